"""Compare tests, doctests and the modules that help them with their source: code under test may have replaced some."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from doctest import DocTest
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from pytest_loop.core.judging.doctests import read_examples
from pytest_loop.session.test_modules import is_test_support

_MAX_LAYERS = 20
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find_replaced_tests(items: Iterable[pytest.Item], modules: Iterable[ModuleType], root: Path) -> frozenset[str]:
    """Return the test functions and modules (`path::name`, `path`) that are not what the files of the project say.

    Tests that are generated are among them too: compare the answer with that of a session before the first edit.
    """
    sources: dict[Path, _Source] = {}
    replaced: set[str] = set()
    for item in items:
        if isinstance(item, pytest.Function):
            layers = list(_list_layers(item.obj))
            source = sources.setdefault(item.path, _Source(item.path))
            if not source.has_function(layers):
                replaced.add(item.nodeid.partition("[")[0])
        elif isinstance(item, pytest.DoctestItem) and item.path.suffix == ".py":
            source = sources.setdefault(item.path, _Source(item.path))
            if not source.has_doctest(item.dtest):
                replaced.add(item.nodeid)
    imported: set[str] = set()
    for module in modules:
        path = Path(module.__file__ or "")
        source = sources.setdefault(path, _Source(path))
        functions = ((name, list(_list_layers(vars(module).get(name)))) for name in source.fixed_names)
        replaced |= {f"{_shorten(path, root)}::{name}" for name, layers in functions if not source.has_function(layers)}
        imported |= source.list_imports(module.__package__ or "")
    paths = {name: _find_support(name, root) for name in imported.intersection(sys.modules)}
    faked = (path for name, path in paths.items() if path and getattr(sys.modules[name], "__file__", "") != str(path))
    return frozenset(replaced.union(_shorten(path, root) for path in faked))


def _shorten(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _find_support(name: str, root: Path) -> Path | None:
    """Return the file of the project's tests in which Python's own import system finds a module."""
    for folder in sys.path:
        base = Path(folder, *name.split("."))
        for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if is_test_support(path, root) and path.is_file():
                return path
    return None


def _list_layers(test: object) -> Iterator[CodeType | None]:
    """Yield the code of a test and of what its decorators wrap, the outermost first."""
    function: object = getattr(test, "__func__", test)
    for _ in range(_MAX_LAYERS):
        yield function.__code__ if isinstance(function, FunctionType) else None
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return


class _Source:
    """The functions of one source file, by their first line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked: dict[tuple[CodeType | None, ...], bool] = {}

    def has_function(self, layers: list[CodeType | None]) -> bool:
        """Return whether the innermost layer is a function of this file, and whether decorators explain the others."""
        key = tuple(layers)
        if key not in self._checked:  # parameters share a function
            self._checked[key] = self._check(layers)
        return self._checked[key]

    def has_doctest(self, doctest: DocTest) -> bool:
        """Return whether the examples of a doctest are those of a definition in this file with its name."""
        name = doctest.name.removeprefix(doctest.globs.get("__name__", "")).strip(".")
        examples = [(example.source, example.want) for example in doctest.examples]
        return self._examples.get(name) == examples

    @cached_property
    def _examples(self) -> dict[str, list[tuple[str, str]]]:
        return read_examples(self._path.read_text(encoding="utf-8", errors="replace"))

    @property
    def fixed_names(self) -> Iterator[str]:
        """The functions of the module that nothing decorates, defines twice or assigns."""
        names = Counter(node.name for node in self._tree.body if isinstance(node, _DEFINITIONS))
        assigned = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name) and _is_assigned(node)}
        for node in self._tree.body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list and names[node.name] == 1:
                yield from {node.name} - assigned

    def list_imports(self, package: str) -> set[str]:
        """Return the full names of modules that the file may import."""
        names = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                parents = package.split(".")[: 1 - node.level or None] if node.level else []
                base = ".".join(filter(None, (*parents, node.module)))
                names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        return names

    def _check(self, layers: list[CodeType | None]) -> bool:
        code = layers[-1]
        if code is None or Path(code.co_filename) != self._path or code.co_firstlineno not in self._functions:
            return False
        declared, is_decorated = self._functions[code.co_firstlineno]
        is_same = declared.co_name == code.co_name and _list_constants(declared) <= _list_constants(code)
        return is_same and (len(layers) == 1 or is_decorated)

    @cached_property
    def _tree(self) -> ast.Module:
        """The parsed file; an empty one if it cannot be compiled."""
        try:
            tree = ast.parse(self._path.read_bytes())
            compile(tree, str(self._path), "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return ast.Module(body=[], type_ignores=[])
        return tree

    @cached_property
    def _functions(self) -> dict[int, tuple[CodeType, bool]]:
        """The code of each function, and whether it has a decorator that may wrap it."""
        tree = self._tree
        codes = list(_list_codes(compile(tree, str(self._path), "exec", dont_inherit=True)))
        decorated = {
            min(decorator.lineno for decorator in node.decorator_list)
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.decorator_list
        }
        return {code.co_firstlineno: (code, code.co_firstlineno in decorated) for code in codes}


def _is_assigned(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _list_codes(constant)


def _list_constants(code: CodeType) -> frozenset[object]:
    """Return the texts and numbers of a function and of those inside it."""
    constants = {
        (type(value), value)
        for inner in (code, *_list_codes(code))
        for value in inner.co_consts
        if isinstance(value, (str, bytes, int, float))
    }
    return frozenset(constants)
