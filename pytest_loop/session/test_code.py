"""Compare tests, doctests and the modules that help them with their source: code under test may have replaced some."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from doctest import DocTest
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeGuard

import pytest

from pytest_loop.core.judging.doctests import read_examples
from pytest_loop.session.test_modules import is_test_support

_MAX_LAYERS = 20
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


def find_replaced_tests(items: Iterable[pytest.Item], modules: Iterable[ModuleType], root: Path) -> frozenset[str]:
    """Return the test functions and modules (`path::name`, `path`) that are not what the files of the project say.

    Generated tests are among them, too: compare the result with a session before the first edit.
    """
    replaced: set[str] = set()
    for item in items:
        if isinstance(item, pytest.Function):
            if not _read_source(item.path).has_function(list(_list_layers(item.obj)), root):
                replaced.add(item.nodeid.partition("[")[0])
        elif isinstance(item, pytest.DoctestItem) and item.path.suffix == ".py":
            source = _read_source(item.path)
            if not source.has_doctest(item.dtest):
                replaced.add(item.nodeid)
    for module in modules:
        path = Path(module.__file__ or "")
        changes = _read_source(path).find_changes(vars(module), root)
        replaced |= {f"{_shorten(path, root)}::{name}" for name in changes}
    for name in list_imports(modules):
        file = _find_support_file(name, root)
        if file and getattr(sys.modules[name], "__file__", "") != str(file):
            replaced.add(_shorten(file, root))
    return frozenset(replaced)


def list_imports(modules: Iterable[ModuleType]) -> set[str]:
    """Return the full names of the modules that these have imported."""
    sources = ((_read_source(Path(module.__file__ or "")), module.__package__ or "") for module in modules)
    names = {name for source, package in sources for name in source.list_imports(package)}
    return names.intersection(sys.modules)


def _shorten(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _find_support_file(name: str, root: Path) -> Path | None:
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
        inner_test = getattr(getattr(function, "hypothesis", None), "inner_test", None)  # below `@given`
        function = inner_test or getattr(function, "__wrapped__", None)
        if function is None:
            return


class _Source:
    """The functions of one source file by their first line, its imports, and the names that stay fixed.

    The syntax tree is not kept: the garbage collector would search it again and again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked: dict[tuple[CodeType | None, ...], bool] = {}
        tree, code = _parse_file(path)
        nodes = list(ast.walk(tree))
        decorated = {_get_first_line(node) for node in nodes if _is_decorated_function(node)}
        self._functions = {
            inner.co_firstlineno: (inner, inner.co_firstlineno in decorated) for inner in _list_codes(code)
        }
        self._folded = {_get_first_line(node): _find_folded(node) for node in nodes if isinstance(node, _FUNCTIONS)}
        self._imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        stored = (node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
        self._fixed = _FixedNames(tree.body, Counter(stored))

    def has_function(self, layers: list[CodeType | None], root: Path) -> bool:
        """Return whether the innermost layer is a function of this file.

        With outer layers it must be decorated, and none of them may come from the product.
        """
        key = tuple(layers)
        if key not in self._checked:  # parameters share a function
            self._checked[key] = self._check(layers, root)
        return self._checked[key]

    def _check(self, layers: list[CodeType | None], root: Path) -> bool:
        *outer, code = layers
        if code is None or code.co_firstlineno not in self._functions or Path(code.co_filename) != self._path:
            return False
        declared, is_decorated = self._functions[code.co_firstlineno]
        is_wrapped_rightly = is_decorated and not any(layer is None or _is_product_code(layer, root) for layer in outer)
        return self._is_same_code(declared, code) and (not outer or is_wrapped_rightly)

    def _is_same_code(self, declared: CodeType, code: CodeType) -> bool:
        """Return whether code is that of a declared function, or what pytest makes of it if there are assertions."""
        if declared.co_name != code.co_name or not self._has_constants(declared, _list_constants(code)):
            return False
        is_rewritten = any(name.startswith("@py_") for name in code.co_varnames)
        return code.co_code == declared.co_code or (is_rewritten and set(declared.co_names) <= set(code.co_names))

    def _has_constants(self, declared: CodeType, constants: frozenset[object]) -> bool:
        """Return whether the constants contain those of a declared function, or the operands that give them."""
        missing = _list_constants(declared) - constants
        folded = self._folded.get(declared.co_firstlineno, {})
        return all(value in folded and folded[value] <= constants for value in missing)

    def has_doctest(self, doctest: DocTest) -> bool:
        """Return whether a definition in this file has the name and the examples of a doctest."""
        name = doctest.name.removeprefix(doctest.globs.get("__name__", "")).strip(".")
        examples = [(example.source, example.want) for example in doctest.examples]
        return self._examples.get(name) == examples

    @cached_property
    def _examples(self) -> dict[str, list[tuple[str, str]]]:
        return read_examples(self._path.read_text(encoding="utf-8", errors="replace"))

    def find_changes(self, values: Mapping[str, Any], root: Path) -> Iterator[str]:
        """Yield the fixed names whose values in a namespace are not what the file says."""
        yield from (name for name in self._fixed.functions if not self._is_function(values.get(name), root))
        for name, methods in self._fixed.methods.items():
            members = vars(kind) if isinstance(kind := values.get(name), type) else {}
            yield from (f"{name}.{method}" for method in methods if not self._is_function(members.get(method), root))
        for name, expected in self._fixed.constants.items():
            if (type(value := values.get(name)), value) != (type(expected), expected):
                yield name

    def _is_function(self, value: object, root: Path) -> bool:
        return self.has_function(list(_list_layers(value)), root)

    def list_imports(self, package: str) -> set[str]:
        """Return the full names of modules that the file may import."""
        names = set()
        for node in self._imports:
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            else:
                parents = package.split(".")[: 1 - node.level or None] if node.level else []
                base = ".".join(filter(None, (*parents, node.module)))
                names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        return names


class _FixedNames:
    """The names that a module binds only once: undecorated functions, methods of its classes, and plain constants.

    `stored` counts the assignments to each name anywhere in the module.
    """

    def __init__(self, body: list[ast.stmt], stored: Counter[str]) -> None:
        self.functions: list[str] = []
        self.methods: dict[str, list[str]] = {}
        self.constants: dict[str, object] = {}
        names = _count_definitions(body) + stored
        for node in body:
            if isinstance(node, ast.Assign) and _is_plain(node.value):
                targets = (target.id for target in node.targets if isinstance(target, ast.Name))
                self.constants |= {name: ast.literal_eval(node.value) for name in targets if names[name] == 1}
            elif _is_fixed_definition(node, names, ast.ClassDef):
                inner = _count_definitions(node.body) + stored
                methods = [child.name for child in node.body if _is_fixed_definition(child, inner, _FUNCTIONS)]
                self.methods[node.name] = methods
            elif _is_fixed_definition(node, names, _FUNCTIONS):
                self.functions.append(node.name)


def _count_definitions(body: list[ast.stmt]) -> Counter[str]:
    return Counter(node.name for node in body if isinstance(node, _DEFINITIONS))


def _is_fixed_definition(node: ast.stmt, names: Counter[str], kind: Any) -> TypeGuard[Any]:
    return isinstance(node, kind) and not node.decorator_list and names[node.name] == 1


def _is_decorated_function(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, _FUNCTIONS) and bool(node.decorator_list)


def _parse_file(path: Path) -> tuple[ast.Module, CodeType]:
    """Return the syntax tree and the code of a file; both are empty if it cannot be compiled."""
    try:
        tree = ast.parse(path.read_bytes())
        return tree, compile(tree, str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[]), compile("", str(path), "exec")


def _get_first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _is_product_code(code: CodeType, root: Path) -> bool:
    """Return whether code is of the project, but not of its tests."""
    path = Path(code.co_filename)
    is_inside = path.is_relative_to(root) and "site-packages" not in path.relative_to(root).parts
    return not path.is_absolute() or (is_inside and not is_test_support(path, root))


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Tuple) and all(isinstance(item, ast.Constant) for item in node.elts)
    )


@cache
def _read_source(path: Path) -> _Source:
    return _Source(path)


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _list_codes(constant)


def _list_constants(code: CodeType) -> frozenset[object]:
    """Return the texts and numbers of a function and of those inside it, with their types: 1 equals True."""
    return _type_values(value for inner in (code, *_list_codes(code)) for value in inner.co_consts)


def _find_folded(function: ast.AST) -> dict[object, frozenset[object]]:
    """Return each constant that only assertions compute from others, such as -1 or 60 * 60, and its operands.

    Python computes such constants when it compiles; pytest rewrites assertions so that they are computed each time.
    """
    asserted = {node for part in ast.walk(function) if isinstance(part, ast.Assert) for node in ast.walk(part)}
    folded: dict[object, frozenset[object]] = {}
    others: set[object] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and node not in asserted:
            others |= _type_values([node.value])
        elif isinstance(node, (ast.BinOp, ast.UnaryOp)):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.expr)]
            if all(isinstance(part, (ast.BinOp, ast.UnaryOp, ast.Constant)) for part in parts):
                operands = _type_values(part.value for part in parts if isinstance(part, ast.Constant))
                values = _list_constants(compile(ast.Expression(node), "<constant>", "eval")) - operands
                if node in asserted:
                    folded |= dict.fromkeys(values, operands)
                else:
                    others |= values
    return {value: operands for value, operands in folded.items() if value not in others}


def _type_values(values: Iterable[object]) -> frozenset[object]:
    return frozenset((type(value), value) for value in values if isinstance(value, (str, bytes, int, float)))
