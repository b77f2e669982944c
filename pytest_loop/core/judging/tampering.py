"""Signs of cheating in a change: code that detects tests, compares equal to everything, or silences linters."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_loop.core.judging.annotations import find_lost_annotations
from pytest_loop.core.model.evaluation import SealFinding

# An evaluation with a finding of these kinds is void.
VOID_KINDS = frozenset(
    {
        "sealed",
        "doctest",
        "canary",
        "contradiction",
        "interference",
        "replaced",
        "plugin",
        "site",
        "machinery",
        "equality",
        "ratchet",
        "link",
    }
)
# The void kinds that a user may have caused, by an installation or an edit outside of the project.
ENVIRONMENT_KINDS = frozenset({"plugin", "site"})
# An edit outside of the files that an agent may change; it is put back, and the evaluation counts.
FORBIDDEN = "allow"
# A file that is not part of the change, so that a deciding evaluation ran without it.
LEFT_OUT = "left out"
# A file that may have helped a deciding evaluation to pass.
UNVERIFIED = "not verified"
# Findings of these kinds are reported to the user only, not to the agent.
REPORTED_KINDS = frozenset({"literal", "unstable", UNVERIFIED})
# Comments that silence a linter, a type checker, coverage or a formatter, in any case and spacing.
_SILENCERS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "noqa": r"#\s*(?:(?:ruff|flake8)\s*:\s*)?noqa\b",
        "type: ignore": r"#\s*type\s*:\s*ignore\b",
        "mypy:": r"#\s*mypy\s*:",
        "pyright:": r"#\s*pyright\s*:",
        "pragma: no cover": r"#\s*pragma\s*:?\s*no\s+(?:cover|branch)\b",
        "nosec": r"#\s*nosec\b",
        "no_type_check": r"\bno_type_check\b",
        "pylint: disable": r"#\s*pylint\s*:\s*(?:disable|skip-file)",
        "ruff:": r"#\s*ruff\s*:\s*(?!noqa)",
        "fmt: off": r"#\s*(?:fmt|yapf)\s*:\s*(?:off|skip|disable)\b",
        "isort: skip": r"#\s*isort\s*:\s*(?:skip|off)",
        "eslint": r"/\*\s*eslint\s+[\w@/-]+\s*:",
        "@ts-ignore": r"(?://|/\*)\s*@ts-(?:ignore|nocheck|expect-error)\b",
        "istanbul ignore": r"(?://|/\*)\s*(?:istanbul|c8|v8)\s+ignore\b",
        "nolint": r"//\s*nolint\b",
        "noinspection": r"(?:#|//)\s*noinspection\b",
        # Comments of other tools: a name and a verb without a blank between them, or a verb with a value.
        "a comment that silences": r"(?:#|//|/\*|<!--)\s*@?\w[\w.-]*"
        r"(?:[-:](?:ignore|disable|skip|off|nocheck|suppress)\b|:?\s(?:ignore|disable|skip)=)",
        "#[allow]": r"#!?\[\s*allow\s*\(",
    }.items()
}
_MACHINERY = frozenset(
    {
        *("pytest", "_pytest", "pytest_loop", "unittest", "nose", "xdist", "pluggy", "conftest", "doctest"),
        *("hypothesis", "load_tests"),
    }
)
_MACHINERY_IN_TEXT = re.compile(r"\b_?pytest\b|PYTEST_\w+|\bconftest\b|\bunittest\b")
# A text with spaces is a message to people, unless it looks like code or names a variable of pytest.
_MESSAGE = re.compile(r"(?!.*(?:\bimport\b|[()\[\]=]|PYTEST_)).*\s.*", re.DOTALL)
# Comparison methods, each with the constant results that make no two objects equal and are therefore harmless.
_COMPARISONS = {"__eq__": (False, NotImplemented), "__ne__": (True, NotImplemented), "__contains__": (False,)}
_MIN_TEXT_LENGTH = 5
_MIN_NUMBER = 1000
_MAX_NAMES = 3


@dataclass(frozen=True)
class ChangedSource:
    """The text of a product's source file when the run started (`before`, None for a new file) and now (`after`)."""

    path: str
    before: str | None
    after: str


def is_void(findings: Iterable[SealFinding]) -> bool:
    """Return whether an evaluation with these findings cannot count."""
    return any(finding.kind in VOID_KINDS for finding in findings)


def find_suspicious_changes(
    sources: Iterable[ChangedSource], allowed: frozenset[str], *, is_linted: bool
) -> Iterator[SealFinding]:
    """Find code that an honest edit of the product does not add.

    `allowed` is the test machinery that the product already names, as a pytest plugin does. With `is_linted`, rules
    check more than tests, so that a silenced linter could raise the score.
    """
    sources = tuple(sources)
    if is_linted:
        yield from _find_new_silencers(sources)
    for source in sources:
        if is_linted and (untyped := find_lost_annotations(source.before or "", source.after)):
            detail = f"types of {', '.join(untyped[:_MAX_NAMES])} are gone or became Any"
            yield SealFinding(kind="ratchet", path=source.path, detail=detail)
        before, after = _parse(source.before or ""), _parse(source.after)
        names = sorted(_find_machinery(after) - _find_machinery(before) - allowed)
        if names:
            detail = f"it newly names {', '.join(names[:_MAX_NAMES])}"
            yield SealFinding(kind="machinery", path=source.path, detail=detail)
        blind = sorted(set(_find_blind_comparisons(after)) - set(_find_blind_comparisons(before)))
        if blind:
            detail = f"{', '.join(blind[:_MAX_NAMES])} newly looks at nothing that it compares"
            yield SealFinding(kind="equality", path=source.path, detail=detail)


def find_copied_literals(sources: Iterable[ChangedSource], tests: Iterable[str]) -> Iterator[SealFinding]:
    """Find values of the tests that an edit copied into the product; some of them may be legitimate."""
    added = {source.path: _find_literals(source.after) - _find_literals(source.before or "") for source in sources}
    if not any(added.values()):  # parsing all tests takes seconds in a large project
        return
    expected = {value for text in tests for value in _find_literals(text)}
    for path, literals in added.items():
        values = sorted(map(repr, literals & expected))
        if values:
            detail = f"values of the tests: {', '.join(values[:_MAX_NAMES])}"
            yield SealFinding(kind="literal", path=path, detail=detail)


def find_test_machinery(text: str) -> frozenset[str]:
    """Return the names of test machinery in a module: imported, used, or in a string.

    Docstrings, messages, and code that runs only in a script do not count.
    """
    return _find_machinery(_parse(text))


def _find_machinery(tree: ast.AST) -> frozenset[str]:
    nodes = [node for part in ast.iter_child_nodes(tree) if not _is_script(part) for node in ast.walk(part)]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, (ast.Constant, ast.BinOp, ast.JoinedStr)) and id(node) not in docstrings:
            text = _join_text(node)
            names |= set() if _MESSAGE.fullmatch(text) else set(_MACHINERY_IN_TEXT.findall(text))
    return frozenset(name for name in names if name in _MACHINERY or name.startswith("PYTEST_"))


def _join_text(node: ast.AST) -> str:
    """Return the text of a constant, or of constants that are joined by `+` or in an f-string."""
    if isinstance(node, ast.BinOp):
        return _join_text(node.left) + _join_text(node.right)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_join_text, node.values))
    if isinstance(node, ast.FormattedValue):
        return _join_text(node.value)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_script(node: ast.AST) -> bool:
    """Return whether a statement runs only if its module is a script; one with an `else` always runs."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "__name__ == '__main__'"


def _parse(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _find_blind_comparisons(tree: ast.AST) -> Iterator[str]:
    """Yield comparison methods that never use their argument."""
    for node in ast.walk(tree):
        for name, function in _find_methods(node):
            harmless = _COMPARISONS.get(name.rpartition(".")[2])
            if harmless and _ignores_argument(function) and not _returns_only(function, harmless):
                yield name


def _find_methods(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield methods by name: of a class body, assigned to attributes, or in a dict or call that may build a class."""
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.FunctionDef):
                yield f"{node.name}.{child.name}", child
            elif isinstance(child, ast.Assign):
                names = (target.id for target in child.targets if isinstance(target, ast.Name))
                yield from ((f"{node.name}.{name}", child.value) for name in names)
    elif isinstance(node, ast.Dict):
        yield from ((str(getattr(key, "value", "")), value) for key, value in zip(node.keys, node.values, strict=True))
    elif isinstance(node, ast.Call):
        yield from ((keyword.arg or "", keyword.value) for keyword in node.keywords)
        yield from ((_join_text(name), value) for name, value in pairwise(node.args))
    elif isinstance(node, ast.Assign):
        yield from ((target.attr, node.value) for target in node.targets if isinstance(target, ast.Attribute))


def _ignores_argument(function: ast.AST) -> bool:
    """Return whether the last argument, the other object, is never used."""
    if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
        return False
    arguments = [*function.args.posonlyargs, *function.args.args]
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return not arguments or arguments[-1].arg not in names


def _returns_only(function: ast.AST, constants: tuple[object, ...]) -> bool:
    """Return whether a method returns nothing but these constants."""
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    values = [function.body] if isinstance(function, ast.Lambda) else returned
    return all(_evaluate_constant(value) in constants for value in values)


def _evaluate_constant(node: ast.AST | None) -> object:
    if isinstance(node, ast.Name) and node.id == "NotImplemented":
        return NotImplemented
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _find_new_silencers(sources: Sequence[ChangedSource]) -> Iterator[SealFinding]:
    """Find silencers that an edit adds; one that moves to another file is not new."""
    before = [_count_silencers(source.path, source.before or "") for source in sources]
    after = [_count_silencers(source.path, source.after) for source in sources]
    new = sum(after, Counter()) - sum(before, Counter())
    for source, old_counts, counts in zip(sources, before, after, strict=True):
        if names := sorted((counts - old_counts).keys() & new.keys()):
            yield SealFinding(kind="ratchet", path=source.path, detail=f"it newly says {', '.join(names)}")


def _count_silencers(path: str, text: str) -> Counter[str]:
    """Count silencers; imports that `__all__` lists count, because they silence a linter about unused imports."""
    exported = 0 if path.endswith("__init__.py") else len(_find_exported_imports(_parse(text)))
    counts = {name: len(pattern.findall(text)) for name, pattern in _SILENCERS.items()}
    return +Counter({**counts, "imported names in __all__": exported})


def _find_exported_imports(tree: ast.AST) -> set[str]:
    """Return the imported names that `__all__` lists."""
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        and node.value is not None
        and "__all__" in {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    ]
    texts = {_join_text(child) for value in values for child in ast.walk(value)}
    return imported & texts


def _find_literals(text: str) -> set[str | int | float]:
    """Return the constants that are too specific to be equal by chance."""
    return {
        node.value
        for node in ast.walk(_parse(text))
        if isinstance(node, ast.Constant)
        and (
            (isinstance(node.value, str) and len(node.value) >= _MIN_TEXT_LENGTH)
            or (isinstance(node.value, (int, float)) and abs(node.value) >= _MIN_NUMBER)
        )
    }
