"""Signs of cheating in a change: code that detects tests, compares equal to everything, or silences linters."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pytest_loop.core.model.evaluation import SealFinding

# An evaluation with a finding of these kinds is void.
VOID_KINDS = frozenset({"sealed", "canary", "plugin", "site", "machinery", "equality", "ratchet"})
# Findings of these kinds are reported to the user only, not to the agent.
REPORTED_KINDS = frozenset({"literal", "unstable"})
SILENCERS = ("noqa", "type: ignore", "pragma: no cover", "pragma: no branch", "nosec", "pylint: disable", "mypy: ")
_MACHINERY = frozenset(
    {"pytest", "_pytest", "unittest", "nose", "xdist", "pluggy", "conftest", "doctest", "hypothesis"}
)
_MACHINERY_IN_TEXT = re.compile(r"\b_?pytest\b|PYTEST_\w+|\bconftest\b|\bunittest\b")
_COMPARISONS = ("__eq__", "__ne__", "__hash__")
_MIN_TEXT_LENGTH = 5
_MIN_NUMBER = 1000
_MAX_NAMES = 3


@dataclass(frozen=True)
class Source:
    """A Python file of the product now and when the run started (None: it is new)."""

    path: str
    before: str | None
    after: str


def is_void(findings: Iterable[SealFinding]) -> bool:
    """Return whether an evaluation with these findings cannot count."""
    return any(finding.kind in VOID_KINDS for finding in findings)


def find_suspicious_changes(
    sources: Iterable[Source], allowed: frozenset[str], *, is_linted: bool
) -> Iterator[SealFinding]:
    """Find code that a change of the product should not add.

    `allowed` is the test machinery that the product already mentions, as a pytest plugin does. `is_linted` states that
    rules check more than tests, so that a silenced linter could raise the score.
    """
    for source in sources:
        before, after = _parse(source.before or ""), _parse(source.after)
        names = sorted(_find_machinery(after) - _find_machinery(before) - allowed)
        if names:
            detail = f"it newly names {', '.join(names[:_MAX_NAMES])}"
            yield SealFinding(kind="machinery", path=source.path, detail=detail)
        blind = sorted(set(_find_blind_comparisons(after)) - set(_find_blind_comparisons(before)))
        if blind:
            detail = f"{', '.join(blind[:_MAX_NAMES])} newly looks at nothing that it compares"
            yield SealFinding(kind="equality", path=source.path, detail=detail)
        silencers = _count_silencers(source.after) - _count_silencers(source.before or "")
        if silencers and is_linted:
            detail = f"it newly says {', '.join(sorted(silencers))}"
            yield SealFinding(kind="ratchet", path=source.path, detail=detail)


def find_copied_literals(sources: Iterable[Source], tests: Iterable[str]) -> Iterator[SealFinding]:
    """Find values of the tests that newly occur in the product; they may be right or written to please."""
    expected = {value for text in tests for value in _find_literals(text)}
    for source in sources:
        added = _find_literals(source.after) - _find_literals(source.before or "")
        values = sorted(map(repr, added & expected))
        if values:
            detail = f"values of the tests: {', '.join(values[:_MAX_NAMES])}"
            yield SealFinding(kind="literal", path=source.path, detail=detail)


def find_test_machinery(text: str) -> frozenset[str]:
    """Return the names of test machinery in a module: imported, used, or in a string that is not a docstring."""
    return _find_machinery(_parse(text))


def _find_machinery(tree: ast.AST) -> frozenset[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            names |= set(_MACHINERY_IN_TEXT.findall(node.value))
    return frozenset(name for name in names if name in _MACHINERY or name.startswith("PYTEST_"))


def _parse(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _find_blind_comparisons(tree: ast.AST) -> Iterator[str]:
    """Find comparison methods that never use their argument."""
    for node in ast.walk(tree):
        for name, function in _find_methods(node):
            if name.rpartition(".")[2] in _COMPARISONS and _ignores_argument(function):
                yield name


def _find_methods(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Find methods in a class body, assigned as attributes, or in a dict that a class may be built from."""
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.FunctionDef):
                yield f"{node.name}.{child.name}", child
            elif isinstance(child, ast.Assign):
                names = (target.id for target in child.targets if isinstance(target, ast.Name))
                yield from ((f"{node.name}.{name}", child.value) for name in names)
    elif isinstance(node, ast.Dict):
        yield from ((str(getattr(key, "value", "")), value) for key, value in zip(node.keys, node.values, strict=True))
    elif isinstance(node, ast.Assign):
        yield from ((target.attr, node.value) for target in node.targets if isinstance(target, ast.Attribute))


def _ignores_argument(function: ast.AST) -> bool:
    """Return whether the last argument is never used: the other object, or for a hash the object itself."""
    if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
        return False
    arguments = [*function.args.posonlyargs, *function.args.args]
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return not arguments or arguments[-1].arg not in names


def _count_silencers(text: str) -> Counter[str]:
    return +Counter({word: text.count(f"# {word}") + text.count(f"#{word}") for word in SILENCERS})


def _find_literals(text: str) -> set[str | int | float]:
    """Return the constants that are too specific to coincide by chance."""
    return {
        node.value
        for node in ast.walk(_parse(text))
        if isinstance(node, ast.Constant)
        and (
            (isinstance(node.value, str) and len(node.value) >= _MIN_TEXT_LENGTH)
            or (isinstance(node.value, (int, float)) and abs(node.value) >= _MIN_NUMBER)
        )
    }
