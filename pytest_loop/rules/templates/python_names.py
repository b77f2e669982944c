"""Functions of the code template for the public names of a Python file."""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_loop.rules.document import Document
from pytest_loop.rules.templates.artifact_reader import fail_with, read_document

PYTHON_SUFFIXES = (".py", ".pyi")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class ParsedModule(NamedTuple):
    """A Python file and its syntax tree."""

    document: Document
    tree: ast.Module

    def describe(self, node: ast.stmt | ast.expr | ast.ExceptHandler, problem: str) -> str:
        return f"{self.document.line(node.lineno)}: {problem}"


class PublicFunction(NamedTuple):
    """A public function, and its class if it is a method."""

    node: Function
    owner: ast.ClassDef | None

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.node.name}" if self.owner else self.node.name


def check_other_language(artifact: Path, workspace: Path) -> None:
    """Fail for Python, so that the next sentence of the template applies only to other languages."""
    document = read_document(artifact, workspace)
    if is_python(artifact):
        raise AssertionError(f"{document.shown} is Python, which the check before this one judges")


def is_python(artifact: Path) -> bool:
    """Return whether a file is Python, by its name."""
    return artifact.suffix.lower() in PYTHON_SUFFIXES


def parse_python(artifact: Path, workspace: Path) -> ParsedModule:
    """Parse the artifact; raise `AssertionError` if it is not Python."""
    document = read_document(artifact, workspace)
    if not is_python(artifact):
        raise AssertionError(f"{document.shown} is not Python")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ParsedModule(document, ast.parse(document.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise AssertionError(f"{document.line(line)}: expected Python, found {error}") from None


def _find_public_definitions(
    body: list[ast.stmt], owner: ast.ClassDef | None = None
) -> Iterator[PublicFunction | ast.ClassDef]:
    """Yield the public functions, classes and methods, also below `if`, `try` and `with`."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            blocks = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
            blocks += [handler.body for handler in getattr(node, "handlers", [])]
            yield from _find_public_definitions([statement for block in blocks for statement in block], owner)
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield node
            yield from _find_public_definitions(node.body, node)
        elif isinstance(node, Function) and _is_public(node.name):
            yield PublicFunction(node, owner)


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def check_public_names(artifact: Path, workspace: Path) -> None:
    """Fail unless there are public names, those in `__all__` exist, and no public function is a stub."""
    source = parse_python(artifact, workspace)
    public = list(_find_public_definitions(source.tree.body))
    exported = _find_exported_names(source.tree)
    if not public and not exported:
        raise AssertionError(f"{source.document.line(1)}: expected a public function or class, found none")
    classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
    bases = {ast.unparse(base) for node in classes for base in node.bases}
    problems = _find_undefined_names(source, exported)
    for function in public:
        if isinstance(function, PublicFunction) and artifact.suffix.lower() != ".pyi" and _is_stub(function, bases):
            problem = f"expected {function.name} to do something, found a stub"
            problems.append(source.describe(function.node, problem))
    fail_with(problems)


def _find_exported_names(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the names in `__all__`, where it is a literal."""
    return {
        str(name.value): name
        for node in tree.body
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets)
        if isinstance(node.value, (ast.List, ast.Tuple))
        for name in node.value.elts
        if isinstance(name, ast.Constant)
    }


def _find_undefined_names(source: ParsedModule, exported: dict[str, ast.expr]) -> list[str]:
    """Return a problem for each name in `__all__` that the module does not define."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symbols = symtable.symtable(source.document.text, source.document.shown, "exec").get_symbols()
    except SyntaxError as error:  # such as `nonlocal` outside of a function, which still has a tree
        return [f"{source.document.line(error.lineno or 1)}: expected Python, found {error.msg}"]
    defined = {
        symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    if "__getattr__" in defined or any(_is_star_import(node) for node in ast.walk(source.tree)):
        return []
    return [
        source.describe(node, f"expected {name!r} of `__all__`, found no such name")
        for name, node in exported.items()
        if name not in defined
    ]


def _is_star_import(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"


def _is_stub(function: PublicFunction, bases: set[str]) -> bool:
    """Return whether a function does nothing and is not abstract, an overload or a method of a base class."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.node.decorator_list}
    if decorators & {"abstractmethod", "overload"} or (function.owner and _is_abstract(function.owner, bases)):
        return False
    body = [statement for statement in function.node.body if not isinstance(_get_constant(statement), str)]
    if all(isinstance(statement, ast.Pass) for statement in body):
        return function.owner is None  # a method may do nothing on purpose
    return all(is_ellipsis(statement) or _raises_not_implemented(statement) for statement in body)


def _is_abstract(owner: ast.ClassDef, bases: set[str]) -> bool:
    base_names = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in owner.bases}
    return bool(base_names & {"Protocol", "ABC"}) or bool(owner.keywords) or owner.name in bases


def _get_constant(node: ast.stmt) -> object:
    return node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None


def is_ellipsis(node: ast.stmt) -> bool:
    """Return whether a statement is `...`."""
    return _get_constant(node) is ...


def _raises_not_implemented(node: ast.stmt) -> bool:
    return isinstance(node, ast.Raise) and ast.unparse(node).startswith("raise NotImplementedError")


def check_annotations(artifact: Path, workspace: Path) -> None:
    """Fail unless public functions and methods have annotations for parameters and result."""
    source = parse_python(artifact, workspace)
    functions = [node for node in _find_public_definitions(source.tree.body) if isinstance(node, PublicFunction)]
    fail_with(
        source.describe(function.node, f"{function.name}: expected annotations for {_join(names)}, found none")
        for function in functions
        if (names := _find_missing_annotations(function))
    )


def _find_missing_annotations(function: PublicFunction) -> list[str]:
    """Return the parameters without annotations, and `the result` if it has none."""
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if function.owner and "staticmethod" not in map(ast.unparse, function.node.decorator_list):
        positional = positional[1:]
    variadic = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    parameters = [*positional, *arguments.kwonlyargs, *variadic]
    names = [parameter.arg for parameter in parameters if parameter.annotation is None]
    has_result = function.node.returns is not None or function.node.name == "__init__"
    return names if has_result else [*names, "the result"]


def _join(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def check_naming(artifact: Path, workspace: Path) -> None:
    """Fail unless functions are snake_case and classes CapWords; a subclass may take method names from its base."""
    source = parse_python(artifact, workspace)
    classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
    owners: list[ast.Module | ast.ClassDef] = [source.tree, *(node for node in classes if not node.bases)]
    functions = [child for owner in owners for child in owner.body if isinstance(child, Function)]
    fail_with(
        [
            source.describe(node, f"expected a class name such as OrderLine, found {node.name!r}")
            for node in classes
            if not _is_cap_words(node.name)
        ]
        + [
            source.describe(node, f"expected a name such as order_line, found {node.name!r}")
            for node in functions
            if node.name != node.name.lower()
        ]
    )


def _is_cap_words(name: str) -> bool:
    bare = name.strip("_")
    return bare[:1].isupper() and "_" not in bare
