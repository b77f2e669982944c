"""Which lines are to blame: those that failing tests execute and passing tests do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

Line: TypeAlias = tuple[str, int]

# Both are ties' worth: they order lines that tests cannot tell apart, and never overtake another score.
_DEEP = 1e-3
_RECENT = 1e-4
# Tests may fail for different reasons; this much of its score has a line where only one of them counts.
_ALONE = 0.85


@dataclass(frozen=True)
class Spectrum:
    """What one test executed, and where it failed: its frames from the test down to where the exception was raised."""

    passed: bool
    lines: frozenset[Line]
    frames: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Suspect:
    """A line, and how suspicious it is: 1 is executed by every failing test and by no other."""

    path: str
    line: int
    score: float


def ochiai(failed: int, passed: int, failures: int) -> float:
    """`failed` and `passed` tests that executed a line, of so many `failures` in all."""
    return failed / sqrt(failures * (failed + passed)) if failed else 0.0


def ranking(
    spectra: Iterable[Spectrum],
    changed: Collection[Line] = (),
    ages: Mapping[str, float] | None = None,
) -> list[Suspect]:
    """The lines that failing tests executed, most suspicious first.

    Ties go to the frame in which a test failed, the last one first, then to lines that were changed lately, then to
    files that were (`ages` are their times), and then to the line that stands first.
    """
    known = list(spectra)
    failing = [one for one in known if not one.passed]
    failed = Counter(line for one in failing for line in one.lines)
    passed = Counter(line for one in known if one.passed for line in one.lines)
    depth = _depths(failing)
    recent = _recency(ages or {})
    touched = set(changed)

    def score(line: Line) -> float:
        together, alone = ochiai(failed[line], passed[line], len(failing)), ochiai(1, passed[line], 1)
        base = max(together, _ALONE * alone)
        return base + _DEEP * depth.get(line, 0.0) + _RECENT * ((line in touched) + recent.get(line[0], 0.0))

    found = [Suspect(*line, score(line)) for line in failed]
    return sorted(found, key=lambda one: (-one.score, one.path, one.line))


def _depths(failing: Iterable[Spectrum]) -> dict[Line, float]:
    """How deep a line was in the stacks of failures: 1 is where the exception was raised."""
    found: dict[Line, float] = {}
    for one in failing:
        for at, line in enumerate(one.frames, start=1):
            found[line] = max(found.get(line, 0.0), at / len(one.frames))
    return found


def _recency(ages: Mapping[str, float]) -> dict[str, float]:
    """The newest file 0.5, the others less by their rank."""
    order = sorted(ages, key=lambda path: (ages[path], path))
    return {path: 0.5 * (at + 1) / len(order) for at, path in enumerate(order)}
