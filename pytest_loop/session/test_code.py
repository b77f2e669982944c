"""Compare collected tests and doctests with their source: code under test may have replaced one that fails."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from doctest import DocTest
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from pytest_loop.core.judging.doctests import read_examples

_MAX_LAYERS = 20


def find_replaced_tests(items: Iterable[pytest.Item]) -> frozenset[str]:
    """Return the test functions (`path::name`) that are not what the source file of their item says.

    Tests that are generated are among them too: compare the answer with that of a session before the first edit.
    """
    sources: dict[Path, _Source] = {}
    replaced = set()
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
    return frozenset(replaced)


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

    def _check(self, layers: list[CodeType | None]) -> bool:
        code = layers[-1]
        if code is None or Path(code.co_filename) != self._path or code.co_firstlineno not in self._functions:
            return False
        declared, is_decorated = self._functions[code.co_firstlineno]
        is_same = declared.co_name == code.co_name and _list_constants(declared) <= _list_constants(code)
        return is_same and (len(layers) == 1 or is_decorated)

    @cached_property
    def _functions(self) -> dict[int, tuple[CodeType, bool]]:
        """The code of each function, and whether it has a decorator that may wrap it."""
        try:
            tree = ast.parse(self._path.read_bytes())
            codes = list(_list_codes(compile(tree, str(self._path), "exec", dont_inherit=True)))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return {}
        decorated = {
            min(decorator.lineno for decorator in node.decorator_list)
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.decorator_list
        }
        return {code.co_firstlineno: (code, code.co_firstlineno in decorated) for code in codes}


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
