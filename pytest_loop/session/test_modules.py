"""Compare the names of test modules at the end of a session with those after collection."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

_CONSTANTS = (str, bytes, int, float, complex, tuple, frozenset)


class TestModule:
    """The functions and constants of one module with tests, and of its classes.

    Names that code of the module assigns while it runs are left out, and so are values that can change in place: a
    test may give them to the product.
    """

    __test__ = False  # pytest collects classes by their names

    def __init__(self, module: ModuleType) -> None:
        self._path = Path(module.__file__ or "")
        classes = (kind for kind in vars(module).values() if isinstance(kind, type))
        spaces: list[Any] = [module, *(kind for kind in classes if kind.__module__ == module.__name__)]
        self._before = [(space.__name__, vars(space), _select_fixed(vars(space))) for space in spaces]

    def find_changes(self) -> Iterator[str]:
        """Yield the names that have other values now, or none."""
        for space, now, before in self._before:
            for name, value in before.items():
                if now.get(name) is not value and name not in self._assigned_names:
                    yield f"{space}.{name}"

    @cached_property
    def _assigned_names(self) -> set[str]:
        """The names that functions of the module declare as global or set as attributes."""
        try:
            nodes = list(ast.walk(ast.parse(self._path.read_bytes())))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return set()
        declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        attributes = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
        return declared | {node.attr for node in attributes}


def _select_fixed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("__") and (callable(value) or isinstance(value, _CONSTANTS))
    }
