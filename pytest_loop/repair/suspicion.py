"""Rank lines by how likely they are at fault: executed by failing tests and not by passing ones."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

from pytest_loop.repair.python_source import PythonSource

Line: TypeAlias = tuple[str, int]

# These weights only break ties between lines with the same Ochiai score.
_DEPTH_WEIGHT = 1e-3
_RECENCY_WEIGHT = 1e-4
# Tests may fail for different reasons: a line scores at least this share of its score with one failing test.
_SINGLE_FAILURE_WEIGHT = 0.85
# No test executes the definition of a constant; it gets this share of the score of a line that reads it.
_DEFINITION_WEIGHT = 0.6
# The same share for a regular expression, which is code itself: the full score.
_PATTERN_WEIGHT = 1.0


@dataclass(frozen=True)
class Spectrum:
    """The lines that one test executed, and the frames of its failure from the test down to the exception."""

    passed: bool
    lines: frozenset[Line]
    frames: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Suspect:
    """A line and its score; a line that every failing test executes and no passing one has score 1."""

    path: str
    line: int
    score: float


def compute_ochiai(failed: int, passed: int, failures: int) -> float:
    """Compute the Ochiai score of a line that `failed` of all `failures` and `passed` passing tests executed."""
    return failed / sqrt(failures * (failed + passed)) if failed else 0.0


def rank_lines(
    spectra: Iterable[Spectrum],
    mtimes: Mapping[str, float] | None = None,
) -> list[Suspect]:
    """Rank the lines that failing tests executed, most suspicious first.

    Ties go to the innermost frame of a failure, then to recently changed files (`mtimes`: by path),
    then to the first line.
    """
    spectra = list(spectra)
    failing = [spectrum for spectrum in spectra if not spectrum.passed]
    failed = Counter(line for spectrum in failing for line in spectrum.lines)
    passed = Counter(line for spectrum in spectra if spectrum.passed for line in spectrum.lines)
    depths = _compute_depths(failing)
    recency = _compute_recency(mtimes or {})

    def score(line: Line) -> float:
        together = compute_ochiai(failed[line], passed[line], len(failing))
        single = compute_ochiai(1, passed[line], 1)
        tie_break = _DEPTH_WEIGHT * depths.get(line, 0.0) + _RECENCY_WEIGHT * recency.get(line[0], 0.0)
        return max(together, _SINGLE_FAILURE_WEIGHT * single) + tie_break

    suspects = [Suspect(*line, score(line)) for line in failed]
    return sorted(suspects, key=lambda suspect: (-suspect.score, suspect.path, suspect.line))


def _compute_depths(failing: Iterable[Spectrum]) -> dict[Line, float]:
    """Return the depth of each line in the stacks of failures; 1 is the line that raised the exception."""
    depths: dict[Line, float] = {}
    for spectrum in failing:
        for position, line in enumerate(spectrum.frames, start=1):
            depths[line] = max(depths.get(line, 0.0), position / len(spectrum.frames))
    return depths


def _compute_recency(mtimes: Mapping[str, float]) -> dict[str, float]:
    """Return a number for each path: 0.5 for the newest file, less for older ones, by rank."""
    order = sorted(mtimes, key=lambda path: (mtimes[path], path))
    return {path: 0.5 * (rank + 1) / len(order) for rank, path in enumerate(order)}


def add_definition_scores(sources: Iterable[PythonSource], scores: Mapping[Line, float]) -> dict[Line, float]:
    """Return the scores, with a share of them also for the lines that define names read on suspicious lines."""
    sources = list(sources)
    definitions: dict[str, list[tuple[Line, float]]] = {}
    for source in sources:
        for name, stmt in _find_definitions(source.tree.body):
            share = _PATTERN_WEIGHT if _is_pattern(stmt) else _DEFINITION_WEIGHT
            definitions.setdefault(name, []).append(((str(source.path), stmt.lineno), share))
    combined = dict(scores)
    for source in sources:
        for node in ast.walk(source.tree):
            if name := _get_read_name(node):
                score = scores.get((str(source.path), getattr(node, "lineno", 0)), 0.0)
                for definition, share in definitions.get(name, ()):
                    if score * share > combined.get(definition, 0.0):
                        combined[definition] = score * share
    return combined


def _is_pattern(stmt: ast.stmt) -> bool:
    value = getattr(stmt, "value", None)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "compile"


def _find_definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that assignments in a module or class body define, with their statements."""
    for stmt in body:
        if isinstance(stmt, ast.ClassDef):
            yield from _find_definitions(stmt.body)
        elif isinstance(stmt, ast.Assign | ast.AnnAssign):
            targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
            yield from ((target.id, stmt) for target in targets if isinstance(target, ast.Name))


def _get_read_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
