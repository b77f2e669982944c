"""Edited code in the place of code that is already imported; nothing on disk changes, and only forks do this."""

from __future__ import annotations
import __future__

import ast
import gc
import sys
import types
from abc import ABCMeta
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache, reduce
from operator import or_
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from pytest_loop.repair.overlay import lay, resolved
from pytest_loop.repair.source import Source
from pytest_loop.repair.unit import FunctionNode, Unit

_Path: TypeAlias = tuple[tuple[str, int], ...]
_Cache: Any = type(lru_cache(lambda: None))


class Loaded:
    """The functions and modules of the files that may be edited, found once before anything is forked."""

    def __init__(self, sources: Sequence[Source]) -> None:
        names = {str(one.path) for one in sources}
        self._modules: dict[str, list[ModuleType]] = {}
        for module in list(sys.modules.values()):
            if (name := resolved(getattr(module, "__file__", None))) in names:
                self._modules.setdefault(name, []).append(module)
        self._functions: dict[str, list[FunctionType]] = {}
        self._caches: list[_Cache] = []
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and (name := _file_of(one)) in names:
                self._functions.setdefault(name, []).append(one)
            elif isinstance(one, _Cache) and _file_of(one.__wrapped__) in names:
                self._caches.append(one)

    def swap(self, unit: Unit, tree: ast.stmt | ast.Module, text: str) -> None:
        """Let the modules that have the unit's code have the edited one instead."""
        path = str(unit.source.path)
        lay({path: text})
        if path in self._modules and self.exchange(unit, tree) is None:
            for module in self._modules[path]:
                _execute(module, text)

    def exchange(self, unit: Unit, tree: ast.stmt | ast.Module) -> Callable[[], None] | None:
        """Exchange the code of a function where it is; gives what puts the old one back, or None where it cannot."""
        functions = self._functions.get(str(unit.source.path), [])
        pairs = _exchanges(functions, unit, tree)
        if not pairs:
            return None
        before = [(function, function.__code__) for function, _ in pairs]
        for function, code in pairs:
            function.__code__ = code

        def put_back() -> None:
            for function, code in before:
                function.__code__ = code
            for cache in self._caches:
                cache.cache_clear()

        return put_back

    def sizes(self) -> dict[tuple[str, str], int]:
        """How much is in whatever modules and their classes keep."""
        spaces = {module.__name__: vars(module) for modules in self._modules.values() for module in modules}
        for name, space in list(spaces.items()):
            spaces |= {f"{name}.{key}": dict(vars(one)) for key, one in space.items() if isinstance(one, type)}
        return {
            (name, key): len(one)
            for name, space in spaces.items()
            for key, one in space.items()
            if isinstance(one, dict | list | set | deque) and not key.startswith("__")
        }


def _file_of(function: object) -> str:
    return resolved(function.__code__.co_filename) if isinstance(function, FunctionType) else ""


def _same_header(old: FunctionNode, new: FunctionNode) -> bool:
    """Whether all that is evaluated when the function is defined is as it was."""
    return type(old) is type(new) and [ast.dump(one) for one in (old.args, *old.decorator_list)] == [
        ast.dump(one) for one in (new.args, *new.decorator_list)
    ]


def _exchanges(
    functions: list[FunctionType], unit: Unit, tree: ast.stmt | ast.Module
) -> list[tuple[FunctionType, CodeType]]:
    """The functions that live, and the code that each is to have; nothing where one of them cannot take it."""
    node = unit.function
    if node is None or not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef) or not _same_header(node, tree):
        return []
    filename = next((one.__code__.co_filename for one in functions), str(unit.source.path))
    old = _originals(unit, node, filename)
    new = _by_path(_compiled(unit.source, node, tree, filename))
    places = {(code.co_name, code.co_firstlineno): path for path, code in old.items()}
    heads = {path for path in old if path and _is_head(path, old, node)}
    found = []
    for function in functions:
        path = places.get((function.__code__.co_name, function.__code__.co_firstlineno))
        if path is None or not any(path[: len(head)] == head for head in heads):
            continue
        code = new.get(path)
        if code is None or len(code.co_freevars) != len(function.__code__.co_freevars):
            return []
        found.append((function, code))
    return found


_ORIGINALS: dict[int, tuple[Unit, dict[_Path, CodeType]]] = {}


def _originals(unit: Unit, node: FunctionNode, filename: str) -> dict[_Path, CodeType]:
    """The code of a unit before the edit."""
    if id(unit) not in _ORIGINALS:
        _ORIGINALS[id(unit)] = unit, _by_path(_compiled(unit.source, node, node, filename))
    return _ORIGINALS[id(unit)][1]


def _is_head(path: _Path, codes: Mapping[_Path, CodeType], node: FunctionNode) -> bool:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return codes[path].co_name == node.name and codes[path].co_firstlineno == first


def _compiled(source: Source, old: ast.stmt, new: ast.stmt, filename: str) -> CodeType:
    """The code of a module of which there is nothing but one function, and the classes around it."""
    flags = 0
    for stmt in source.tree.body:
        if isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__":
            flags = reduce(or_, (getattr(__future__, one.name).compiler_flag for one in stmt.names), flags)
    body = list(_pruned(source.tree.body, old, new))
    module = ast.Module(body=body, type_ignores=[])
    code: CodeType = compile(module, filename, "exec", flags=flags, dont_inherit=True)
    return code


def _pruned(body: Sequence[ast.stmt], old: ast.stmt, new: ast.stmt) -> Iterator[ast.stmt]:
    for stmt in body:
        if stmt is old:
            yield new
            return
        for name in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(stmt, name, None)
            if isinstance(inner, list) and (found := list(_pruned(inner, old, new))):
                yield _with_body(stmt, found) if isinstance(stmt, ast.ClassDef) else found[0]
                return


def _with_body(stmt: ast.ClassDef, body: list[ast.stmt]) -> ast.ClassDef:
    found = copy(stmt)
    found.body, found.decorator_list = body, []
    return found


def _by_path(code: CodeType) -> dict[_Path, CodeType]:
    """Every code object inside of one, by the names on the way to it; those of one name are counted."""
    found: dict[_Path, CodeType] = {}

    def walk(outer: CodeType, path: _Path) -> None:
        found[path] = outer
        seen: dict[str, int] = {}
        for one in outer.co_consts:
            if isinstance(one, CodeType):
                seen[one.co_name] = seen.get(one.co_name, -1) + 1
                walk(one, (*path, (one.co_name, seen[one.co_name])))

    walk(code, ())
    return found


def _execute(module: ModuleType, text: str) -> None:
    """Execute the edited module in place of the old one; what others hold of it is changed where it is."""
    space = vars(module)
    before = dict(space)
    filename = str(module.__file__)
    exec(compile(text, filename, "exec", dont_inherit=True), space)  # noqa: S102 - the edited module
    renewed: dict[int, Any] = {}
    for name, old in before.items():
        new = space.get(name)
        if new is old or name.startswith("__"):
            continue
        if getattr(old, "__module__", None) == module.__name__ and _renew(old, new):
            space[name] = old
        else:
            renewed[id(old)] = (name, old, new)
    _rebind(renewed, module)


def _renew(old: Any, new: Any) -> bool:
    """Change a function or class into another one, so that whoever holds it has the new one."""
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        if len(old.__code__.co_freevars) or len(new.__code__.co_freevars):
            return False
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
        return True
    if type(old) in (type, ABCMeta) and type(new) is type(old) and old.__bases__ == new.__bases__:
        return _renew_class(old, new)
    return False


def _renew_class(old: type, new: type) -> bool:
    if "__slots__" in vars(new):
        return False
    for name, value in vars(new).items():
        if name in ("__dict__", "__weakref__", "__doc__", "__module__"):
            continue
        mine = vars(old).get(name)
        if isinstance(value, FunctionType) and isinstance(mine, FunctionType) and _renew(mine, value):
            continue
        setattr(old, name, value)
    return True


def _rebind(renewed: Mapping[int, tuple[str, Any, Any]], home: ModuleType) -> None:
    """Names that other modules have taken from this one."""
    for module in list(sys.modules.values()):
        if module is home or not isinstance(module, types.ModuleType) or not getattr(module, "__file__", None):
            continue
        space = vars(module)
        for at, (name, old, new) in renewed.items():
            if space.get(name) is old and id(old) == at:
                space[name] = new
