"""Compare test modules, and the modules that help them, with their state after the collection."""

from __future__ import annotations

import ast
import builtins
import marshal
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_loop.core.judging.files_to_seal import has_helper_name
from pytest_loop.workspace.seal import TEST_FOLDERS, is_test_module

_CONSTANTS = (str, bytes, int, float, complex, tuple, frozenset)
_CONTAINERS = (list, dict, set)
_BUILTINS = frozenset(vars(builtins))


def find_test_modules(items: Iterable[pytest.Item], root: Path) -> list[ModuleType]:
    """Return the modules of collected tests, and the modules of the project that help them, such as a conftest."""
    nodes = {item.getparent(pytest.Module) for item in items}
    modules = {id(node.obj): node.obj for node in nodes if node and isinstance(node.obj, ModuleType)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and isinstance(module, ModuleType) and is_test_support(Path(file), root):
            modules[id(module)] = module
    return list(modules.values())


def is_test_support(path: Path, root: Path) -> bool:
    """Return whether a module belongs to the tests of a project, by its place or name."""
    if path.suffix != ".py" or not path.is_relative_to(root):
        return False
    parts = path.relative_to(root).parts
    is_named = parts[-1] == "conftest.py" or is_test_module(parts[-1]) or has_helper_name(parts[-1])
    return "site-packages" not in parts and (is_named or any(folder in TEST_FOLDERS for folder in parts[:-1]))


class TestModule:
    """The functions and constants of one module with tests, and of its classes.

    Names that functions of the module assign are left out. Lists, dicts and sets are compared only if the module uses
    them in comparisons and nowhere else: a test may pass others to the product, which may change them.
    """

    __test__ = False  # pytest collects classes by their names

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._path = Path(module.__file__ or "")
        self._names = frozenset(vars(module))
        classes = (kind for kind in vars(module).values() if isinstance(kind, type))
        spaces: list[Any] = [module, *(kind for kind in classes if kind.__module__ == module.__name__)]
        self._before = [(space.__name__, vars(space), _select_fixed(vars(space))) for space in spaces]
        containers = ((name, value) for name, value in vars(module).items() if isinstance(value, _CONTAINERS))
        self._contents = {name: _dump(value) for name, value in containers}

    def find_changes(self) -> Iterator[str]:
        """Yield the names that were changed or removed, and new names that hide a built-in function."""
        for space, now, before in self._before:
            for name, value in before.items():
                if now.get(name) is not value and name not in self._assigned_names:
                    yield f"{space}.{name}"
        names = vars(self._module)
        changed = {name for name, content in self._contents.items() if _dump(names.get(name)) != content}
        hiding = (names.keys() & _BUILTINS) - self._names
        # Parsing costs more than all else: most modules have neither.
        for name in sorted((hiding and hiding - self._assigned_names) | (changed and changed & self._compared_names)):
            yield f"{self._module.__name__}.{name}"

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        try:
            return list(ast.walk(ast.parse(self._path.read_bytes())))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return []

    @cached_property
    def _assigned_names(self) -> set[str]:
        """The names that functions of the module declare as global or set as attributes."""
        declared = {name for node in self._nodes if isinstance(node, ast.Global) for name in node.names}
        attributes = (
            node for node in self._nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        )
        return declared | {node.attr for node in attributes}

    @cached_property
    def _compared_names(self) -> set[str]:
        """The names that the module loads as one side of a comparison, and nowhere else."""
        loaded = (node for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        sides = [
            side for node in self._nodes if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)
        ]
        compared = {id(side) for side in sides}
        others = {node.id for node in loaded if id(node) not in compared}
        return {side.id for side in sides if isinstance(side, ast.Name)} - others


def _dump(value: Any) -> bytes:
    """Return the content of a value; empty if it contains an object of a class that is not built in."""
    try:
        return marshal.dumps(value, 0)
    except ValueError:
        return b""


def _select_fixed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("__") and (callable(value) or isinstance(value, _CONSTANTS))
    }
