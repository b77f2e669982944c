"""What the code template asks of the names in a Python file; its syntax tree decides."""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_loop.rules.document import Document
from pytest_loop.rules.templates import artifact_reader

PYTHON = (".py", ".pyi")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    """A Python file and its syntax tree."""

    document: Document
    tree: ast.Module

    def at(self, node: ast.stmt | ast.expr | ast.ExceptHandler, text: str) -> str:
        return f"{self.document.line(node.lineno)}: {text}"


class Method(NamedTuple):
    """A public function, and the class that it belongs to."""

    node: Function
    owner: ast.ClassDef | None

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.node.name}" if self.owner else self.node.name


def check_other_language(artifact: Path, workspace: Path) -> None:
    """Stands before a sentence: an agent judges what has no syntax tree here."""
    document = artifact_reader.read_document(artifact, workspace)
    if is_python(artifact):
        raise AssertionError(f"{document.shown} is Python, which the check before this one judges")


def is_python(artifact: Path) -> bool:
    """By its name."""
    return artifact.suffix.lower() in PYTHON


def parsed(artifact: Path, workspace: Path) -> Source:
    """The artifact as Python; where it is not, the failure says why."""
    document = artifact_reader.read_document(artifact, workspace)
    if not is_python(artifact):
        raise AssertionError(f"{document.shown} is not Python")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Source(document, ast.parse(document.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise AssertionError(f"{document.line(line)}: expected Python, found {error}") from None


def _public(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[Method | ast.ClassDef]:
    """The public functions, classes and methods, also those below an `if` or `try`."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            inner = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            handlers = [one for handler in getattr(node, "handlers", []) for one in handler.body]
            yield from _public([*inner, *handlers], owner)
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield node
            yield from _public(node.body, node)
        elif isinstance(node, Function) and _is_public(node.name):
            yield Method(node, owner)


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def check_public_names(artifact: Path, workspace: Path) -> None:
    """There are public names, what `__all__` promises exists, and no public function is a stub."""
    source = parsed(artifact, workspace)
    public = list(_public(source.tree.body))
    promised = _promised(source.tree)
    if not public and not promised:
        raise AssertionError(f"{source.document.line(1)}: expected a public function or class, found none")
    bases = {ast.unparse(base) for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef) for base in one.bases}
    problems = _undefined(source, promised)
    for one in public:
        if isinstance(one, Method) and _is_stub(one, bases) and artifact.suffix.lower() != ".pyi":
            problems.append(source.at(one.node, f"expected {one.name} to do something, found a stub"))
    artifact_reader.fail_with(problems)


def _promised(tree: ast.Module) -> dict[str, ast.expr]:
    """The names in `__all__`, where it is written out."""
    values = [
        one.value for one in tree.body if isinstance(one, ast.Assign) and "__all__" in map(ast.unparse, one.targets)
    ]
    return {
        str(name.value): name
        for value in values
        if isinstance(value, (ast.List, ast.Tuple))
        for name in value.elts
        if isinstance(name, ast.Constant)
    }


def _undefined(source: Source, promised: dict[str, ast.expr]) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symbols = symtable.symtable(source.document.text, source.document.shown, "exec").get_symbols()
    except SyntaxError as error:  # such as `nonlocal` outside of a function, which still has a tree
        return [f"{source.document.line(error.lineno or 1)}: expected Python, found {error.msg}"]
    known = {one.get_name() for one in symbols if one.is_assigned() or one.is_imported() or one.is_namespace()}
    made_later = "__getattr__" in known or any(_is_star(one) for one in ast.walk(source.tree))
    missing = {} if made_later else {name: node for name, node in promised.items() if name not in known}
    return [source.at(node, f"expected {name!r} of `__all__`, found no such name") for name, node in missing.items()]


def _is_star(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"


def _is_stub(one: Method, bases: set[str]) -> bool:
    """Nothing but `...` or NotImplementedError, where no subclass is meant to fill it in; `pass` may be meant."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in one.node.decorator_list}
    if decorators & {"abstractmethod", "overload"} or (one.owner and _is_abstract(one.owner, bases)):
        return False
    body = [statement for statement in one.node.body if not _is_text(statement)]
    if not body or all(isinstance(statement, ast.Pass) for statement in body):
        return one.owner is None
    return all(is_ellipsis(statement) or _says_not_implemented(statement) for statement in body)


def _is_abstract(owner: ast.ClassDef, bases: set[str]) -> bool:
    own = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in owner.bases}
    return bool(own & {"Protocol", "ABC"}) or bool(owner.keywords) or owner.name in bases


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_ellipsis(node: ast.stmt) -> bool:
    """Nothing but `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _says_not_implemented(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Raise) and node.exc is not None and ast.unparse(node.exc).startswith("NotImplementedError")
    )


def check_annotations(artifact: Path, workspace: Path) -> None:
    """Public functions and methods have annotations for what they take and give."""
    source = parsed(artifact, workspace)
    methods = [one for one in _public(source.tree.body) if isinstance(one, Method)]
    found = [(one, missing) for one in methods if (missing := _unannotated(one))]
    artifact_reader.fail_with(
        source.at(one.node, f"{one.name}: expected annotations for {_listed(names)}, found none")
        for one, names in found
    )


def _unannotated(one: Method) -> list[str]:
    given = one.node.args
    plain = [*given.posonlyargs, *given.args]
    if one.owner and "staticmethod" not in map(ast.unparse, one.node.decorator_list):
        plain = plain[1:]
    rest = [extra for extra in (given.vararg, given.kwarg) if extra]
    names = [each.arg for each in [*plain, *given.kwonlyargs, *rest] if each.annotation is None]
    gives = one.node.returns is not None or one.node.name == "__init__"
    return names if gives else [*names, "the result"]


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def check_naming(artifact: Path, workspace: Path) -> None:
    """Functions are snake_case and classes CapWords; a subclass may have to use the names of its base."""
    source = parsed(artifact, workspace)
    nodes = list(ast.walk(source.tree))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    owners = [node for node in nodes if isinstance(node, (ast.Module, ast.ClassDef)) and not getattr(node, "bases", [])]
    functions = [child for owner in owners for child in owner.body if isinstance(child, Function)]
    capital = [node for node in functions if node.name != node.name.lower()]
    odd = [node for node in classes if not _is_cap_words(node.name)]
    artifact_reader.fail_with(
        [source.at(node, f"expected a class name such as OrderLine, found {node.name!r}") for node in odd]
        + [source.at(node, f"expected a name such as order_line, found {node.name!r}") for node in capital]
    )


def _is_cap_words(name: str) -> bool:
    bare = name.strip("_")
    return bare[:1].isupper() and "_" not in bare
