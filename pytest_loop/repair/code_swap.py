"""Swap edited code into imported modules, in forks only; nothing on disk changes."""

from __future__ import annotations
import __future__

import ast
import gc
import sys
import types
from abc import ABCMeta
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache, reduce
from operator import or_
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from pytest_loop.repair.edit_unit import EditUnit, FunctionNode
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.source_overlay import install_overlay, resolve_source

# The names of nested code objects, outermost first, each with a number that tells equal names apart.
_CodePath: TypeAlias = tuple[tuple[str, int], ...]
_LruCache: Any = type(lru_cache(lambda: None))


class LoadedCode:
    """The loaded functions, caches and modules of the editable files, found once before the first fork."""

    def __init__(self, sources: Sequence[PythonSource]) -> None:
        paths = {str(source.path) for source in sources}
        self._modules: dict[str, list[ModuleType]] = {}
        for module in list(sys.modules.values()):
            if (path := resolve_source(getattr(module, "__file__", None))) in paths:
                self._modules.setdefault(path, []).append(module)
        self._functions: dict[str, list[FunctionType]] = {}
        self._caches: list[_LruCache] = []
        for value in gc.get_objects():
            if isinstance(value, FunctionType) and (path := _get_source_path(value)) in paths:
                self._functions.setdefault(path, []).append(value)
            elif isinstance(value, _LruCache) and _get_source_path(value.__wrapped__) in paths:
                self._caches.append(value)

    def prepare_unit(self, unit: EditUnit) -> None:
        """Compile a unit before the edit, once for all forks."""
        if unit.function is not None:
            functions = self._functions.get(str(unit.source.path), [])
            _compile_original(unit, unit.function, _get_filename(functions, unit))

    def swap_code(self, unit: EditUnit, tree: ast.stmt | ast.Module, text: str) -> None:
        """Swap the edited unit into all modules of its file; execute them again if it cannot be swapped alone."""
        path = str(unit.source.path)
        install_overlay({path: text})
        if path in self._modules and self.swap_reversibly(unit, tree) is None:
            for module in self._modules[path]:
                _execute_module(module, text)

    def swap_reversibly(self, unit: EditUnit, tree: ast.stmt | ast.Module) -> Callable[[], None] | None:
        """Swap a function or an assignment; return a callback that undoes the swap, or None if none is possible."""
        if isinstance(unit.node, ast.Assign | ast.AnnAssign):
            return self._swap_assignment(unit, tree)
        functions = self._functions.get(str(unit.source.path), [])
        swaps = _plan_swaps(functions, unit, tree)
        if not swaps:
            return None
        originals = [(function, function.__code__) for function, _ in swaps]
        for function, code in swaps:
            function.__code__ = code

        def undo() -> None:
            for function, code in originals:
                function.__code__ = code
            for cache in self._caches:
                cache.cache_clear()

        return undo

    def _swap_assignment(self, unit: EditUnit, tree: ast.stmt | ast.Module) -> Callable[[], None] | None:
        """Execute an assignment again, unless other code that runs during import reads its names."""
        names = _find_assigned_names(unit.node)
        if names != _find_assigned_names(tree):
            return None
        if not isinstance(tree, ast.stmt) or unit.node not in unit.source.tree.body or _is_read_at_import(unit, names):
            return None
        code = compile(ast.Module(body=[tree], type_ignores=[]), str(unit.source.path), "exec", dont_inherit=True)
        modules = self._modules.get(str(unit.source.path), [])
        replaced: list[tuple[ModuleType, str, Any, Any]] = []
        for module in modules:
            before = {name: vars(module).get(name) for name in names}
            exec(code, vars(module))  # noqa: S102 - the edited statement
            replaced += [(module, name, before[name], vars(module)[name]) for name in names]
        for module, name, old, new in replaced:
            _rebind_imports([(name, old, new)], module)

        def undo() -> None:
            for module, name, old, new in replaced:
                vars(module)[name] = old
                _rebind_imports([(name, new, old)], module)

        return undo

    def measure_containers(self) -> dict[tuple[str, str], int]:
        """Return the sizes of all containers that are attributes of modules and their classes."""
        namespaces = {module.__name__: vars(module) for modules in self._modules.values() for module in modules}
        for name, namespace in list(namespaces.items()):
            namespaces |= {
                f"{name}.{key}": dict(vars(value)) for key, value in namespace.items() if isinstance(value, type)
            }
        return {
            (name, key): len(value)
            for name, namespace in namespaces.items()
            for key, value in namespace.items()
            if isinstance(value, dict | list | set | deque) and not key.startswith("__")
        }


def _get_source_path(function: object) -> str:
    return resolve_source(function.__code__.co_filename) if isinstance(function, FunctionType) else ""


def _find_assigned_names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _is_read_at_import(unit: EditUnit, names: Collection[str]) -> bool:
    """Return whether other statements of the module use these names outside of functions."""

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child)

    others = (stmt for stmt in unit.source.tree.body if stmt is not unit.node)
    return any(isinstance(node, ast.Name) and node.id in names for stmt in others for node in walk(stmt))


def _has_same_header(old: FunctionNode, new: FunctionNode) -> bool:
    """Return whether everything evaluated at definition time is unchanged."""
    return type(old) is type(new) and [ast.dump(node) for node in (old.args, *old.decorator_list)] == [
        ast.dump(node) for node in (new.args, *new.decorator_list)
    ]


def _plan_swaps(
    functions: list[FunctionType], unit: EditUnit, tree: ast.stmt | ast.Module
) -> list[tuple[FunctionType, CodeType]]:
    """Pair the loaded functions with their new code; return an empty list if one of them cannot be swapped."""
    node = unit.function
    if node is None or not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    if not _has_same_header(node, tree):
        return []
    filename = _get_filename(functions, unit)
    old = _compile_original(unit, node, filename)
    new = _index_codes(_compile_function(unit.source, node, tree, filename))
    paths = {(code.co_name, code.co_firstlineno): path for path, code in old.items()}
    roots = {path for path in old if path and _is_root(path, old, node)}
    swaps = []
    for function in functions:
        path = paths.get((function.__code__.co_name, function.__code__.co_firstlineno))
        if path is None or not any(path[: len(root)] == root for root in roots):
            continue
        code = new.get(path)
        if code is None or len(code.co_freevars) != len(function.__code__.co_freevars):
            return []
        swaps.append((function, code))
    return swaps


def _get_filename(functions: Sequence[FunctionType], unit: EditUnit) -> str:
    return next((function.__code__.co_filename for function in functions), str(unit.source.path))


_ORIGINAL_CODES: dict[int, tuple[EditUnit, dict[_CodePath, CodeType]]] = {}


def _compile_original(unit: EditUnit, node: FunctionNode, filename: str) -> dict[_CodePath, CodeType]:
    """Compile a unit as it was before the edit, once."""
    if id(unit) not in _ORIGINAL_CODES:
        _ORIGINAL_CODES[id(unit)] = unit, _index_codes(_compile_function(unit.source, node, node, filename))
    return _ORIGINAL_CODES[id(unit)][1]


def _is_root(path: _CodePath, codes: Mapping[_CodePath, CodeType], node: FunctionNode) -> bool:
    """Return whether a path leads to the code of the function itself, not to an enclosing or nested one."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return codes[path].co_name == node.name and codes[path].co_firstlineno == first


def _compile_function(source: PythonSource, old: ast.stmt, new: ast.stmt, filename: str) -> CodeType:
    """Compile a module that contains only one function and the classes around it."""
    flags = 0
    for stmt in source.tree.body:
        if isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__":
            flags = reduce(or_, (getattr(__future__, alias.name).compiler_flag for alias in stmt.names), flags)
    module = ast.Module(body=list(_prune_body(source.tree.body, old, new)), type_ignores=[])
    code: CodeType = compile(module, filename, "exec", flags=flags, dont_inherit=True)
    return code


def _prune_body(body: Sequence[ast.stmt], old: ast.stmt, new: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the new statement inside the classes around the old one, and nothing else."""
    for stmt in body:
        if stmt is old:
            yield new
            return
        for name in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(stmt, name, None)
            if isinstance(inner, list) and (pruned := list(_prune_body(inner, old, new))):
                yield _replace_body(stmt, pruned) if isinstance(stmt, ast.ClassDef) else pruned[0]
                return


def _replace_body(stmt: ast.ClassDef, body: list[ast.stmt]) -> ast.ClassDef:
    result = copy(stmt)
    result.body, result.decorator_list = body, []
    return result


def _index_codes(code: CodeType) -> dict[_CodePath, CodeType]:
    """Index a code object and all code objects nested in it by their paths."""
    index: dict[_CodePath, CodeType] = {}

    def walk(outer: CodeType, path: _CodePath) -> None:
        index[path] = outer
        counts: dict[str, int] = {}
        for value in outer.co_consts:
            if isinstance(value, CodeType):
                counts[value.co_name] = counts.get(value.co_name, -1) + 1
                walk(value, (*path, (value.co_name, counts[value.co_name])))

    walk(code, ())
    return index


def _execute_module(module: ModuleType, text: str) -> None:
    """Execute the edited text in the module's namespace, and update objects that other modules refer to in place."""
    namespace = vars(module)
    before = dict(namespace)
    filename = str(module.__file__)
    exec(compile(text, filename, "exec", dont_inherit=True), namespace)  # noqa: S102 - the edited module
    replaced: dict[int, tuple[str, Any, Any]] = {}
    for name, old in before.items():
        new = namespace.get(name)
        if new is old or name.startswith("__"):
            continue
        if getattr(old, "__module__", None) == module.__name__ and _update_in_place(old, new):
            namespace[name] = old
        else:
            replaced[id(old)] = (name, old, new)
    _rebind_imports(replaced.values(), module)


def _update_in_place(old: Any, new: Any) -> bool:
    """Turn a function or class into its new version without changing its identity; return False if impossible."""
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        if len(old.__code__.co_freevars) or len(new.__code__.co_freevars):
            return False
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
        return True
    if type(old) in (type, ABCMeta) and type(new) is type(old) and old.__bases__ == new.__bases__:
        return _update_class(old, new)
    return False


def _update_class(old: type, new: type) -> bool:
    if "__slots__" in vars(new):
        return False
    for name, value in vars(new).items():
        if name in ("__dict__", "__weakref__", "__doc__", "__module__"):
            continue
        current = vars(old).get(name)
        if isinstance(value, FunctionType) and isinstance(current, FunctionType) and _update_in_place(current, value):
            continue
        setattr(old, name, value)
    return True


def _rebind_imports(replaced: Collection[tuple[str, Any, Any]], origin: ModuleType) -> None:
    """Rebind names in modules that imported from `origin`; `replaced` has each name with its old and new object."""
    for module in list(sys.modules.values()):
        if module is origin or not isinstance(module, types.ModuleType) or not getattr(module, "__file__", None):
            continue
        namespace = vars(module)
        for name, old, new in replaced:
            if namespace.get(name) is old:
                namespace[name] = new
