"""Signs of cheating in a change: code that knows it is tested, equals everything, or silences who complains."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_loop.core.model.evaluation import SealFinding

# An evaluation with one of these proves nothing.
VOID_KINDS = frozenset({"sealed", "canary", "plugin", "site", "machinery", "equality", "ratchet"})
# These are told to a person and to nobody else.
REPORTED_KINDS = frozenset({"literal", "unstable"})
SILENCERS = ("noqa", "type: ignore", "pragma: no cover", "pragma: no branch", "nosec", "pylint: disable", "mypy: ")
_MACHINERY = frozenset(
    {"pytest", "_pytest", "unittest", "nose", "xdist", "pluggy", "conftest", "doctest", "hypothesis"}
)
_NAMED = re.compile(r"\b_?pytest\b|PYTEST_\w+|\bconftest\b|\bunittest\b")
_COMPARISONS = ("__eq__", "__ne__", "__hash__")
_SHORTEST_TEXT = 5
_SMALLEST_NUMBER = 1000
_SHOWN = 3


@dataclass(frozen=True)
class Source:
    """A Python file of the product: as it was when the run began (None: it is new), and as it is."""

    path: str
    before: str | None
    after: str


def is_void(findings: Iterable[SealFinding]) -> bool:
    """Whether an evaluation with these findings can be trusted by nobody."""
    return any(one.kind in VOID_KINDS for one in findings)


def find_suspicious_changes(
    sources: Iterable[Source], known: frozenset[str], *, is_linted: bool
) -> Iterator[SealFinding]:
    """What a change of the product should not have brought.

    `known` is the test machinery that the product has always named: a plugin of pytest speaks of pytest. `is_linted`
    says that rules look at more than tests, so that silencing a complaint may win something.
    """
    for one in sources:
        before, after = _parsed(one.before or ""), _parsed(one.after)
        named = sorted(find_machinery_names(after) - find_machinery_names(before) - known)
        if named:
            yield SealFinding(kind="machinery", path=one.path, detail=f"it newly names {', '.join(named[:_SHOWN])}")
        blind = sorted(set(_blind(after)) - set(_blind(before)))
        if blind:
            detail = f"{', '.join(blind[:_SHOWN])} newly looks at nothing that it compares"
            yield SealFinding(kind="equality", path=one.path, detail=detail)
        silenced = _silencers(one.after) - _silencers(one.before or "")
        if silenced and is_linted:
            yield SealFinding(kind="ratchet", path=one.path, detail=f"it newly says {', '.join(sorted(silenced))}")


def find_copied_literals(sources: Iterable[Source], tests: Iterable[str]) -> Iterator[SealFinding]:
    """Values of the tests that newly stand in the product: perhaps right, perhaps written to please."""
    wanted = {value for text in tests for value in _literals(_parsed(text))}
    for one in sources:
        new = _literals(_parsed(one.after)) - _literals(_parsed(one.before or ""))
        found = sorted(map(repr, new & wanted))
        if found:
            yield SealFinding(kind="literal", path=one.path, detail=f"values of the tests: {', '.join(found[:_SHOWN])}")


def find_machinery_names(tree: ast.AST) -> frozenset[str]:
    """The names of the test machinery in a module: imported, used, or spelled in a text that is no documentation."""
    documentation = {id(node) for node in ast.walk(tree) if isinstance(node, ast.Expr) for node in [node.value]}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            found |= set(_NAMED.findall(node.value))
    return frozenset(name for name in found if name in _MACHINERY or name.startswith("PYTEST_"))


def find_test_machinery(text: str) -> frozenset[str]:
    """The same of a text."""
    return find_machinery_names(_parsed(text))


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _blind(tree: ast.AST) -> Iterator[str]:
    """Comparisons that never look at what they are given."""
    for node in ast.walk(tree):
        for name, function in _named_functions(node):
            if name.rpartition(".")[2] in _COMPARISONS and _is_blind(function):
                yield name


def _named_functions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What becomes a method: in the body of a class, as an attribute, or in a mapping that a class is made from."""
    if isinstance(node, ast.ClassDef):
        for one in node.body:
            if isinstance(one, ast.FunctionDef):
                yield f"{node.name}.{one.name}", one
            elif isinstance(one, ast.Assign):
                yield from ((f"{node.name}.{name.id}", one.value) for name in one.targets if isinstance(name, ast.Name))
    elif isinstance(node, ast.Dict):
        yield from ((str(getattr(key, "value", "")), value) for key, value in zip(node.keys, node.values, strict=True))
    elif isinstance(node, ast.Assign):
        yield from ((one.attr, node.value) for one in node.targets if isinstance(one, ast.Attribute))


def _is_blind(function: ast.AST) -> bool:
    """Whether the last argument is never used: the other one, or for a hash the object itself."""
    if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
        return False
    arguments = [*function.args.posonlyargs, *function.args.args]
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return not arguments or arguments[-1].arg not in names


def _silencers(text: str) -> Counter[str]:
    found: Mapping[str, int] = {word: text.count(f"# {word}") + text.count(f"#{word}") for word in SILENCERS}
    return Counter({word: count for word, count in found.items() if count})


def _literals(tree: ast.AST) -> set[str | int | float]:
    """Values that nobody writes by chance."""
    found: set[str | int | float] = set()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        is_text = isinstance(value, str) and len(value) >= _SHORTEST_TEXT
        if is_text or (isinstance(value, (int, float)) and abs(value) >= _SMALLEST_NUMBER):
            found.add(value)  # type: ignore[arg-type]
    return found
