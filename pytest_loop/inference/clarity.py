"""Score the clarity of a draft, and derive the shape of the run from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.task_intent import METRIC, PATH, find_concrete_objects, find_content_words

MIN_TOOL_SCORE = 8
MIN_CLEAR_SCORE = 5
# Kinds of checks that an agent or a person decides.
_OPINIONS = ("judge", "sentence", "manual")
_CONSTRAINT = re.compile(
    r"\b(?:without|only|must not|mustn't|do not|don't|never|at most|no more than|no (?:new|other|extra|additional))\b"
    r"|\b(?:keep|stays?|existing|unchanged|backwards? compatible|preserv\w+)\b",
    re.IGNORECASE,
)


class Shape(str, Enum):
    """The mode of a run by the clarity of its draft: alone, with questions, or not at all; the strictest last."""

    TOOL = "tool"
    COLLEAGUE = "colleague"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class DraftRule:
    """A rule of a draft; its kind is the key of its check, `tests` for a Python test, or `sentence`."""

    id: str
    kind: str = "tests"
    is_blocking: bool = True
    must_not: bool = False

    @property
    def is_decisive(self) -> bool:
        """Whether a machine decides it and the run cannot succeed without it."""
        return self.is_blocking and not self.must_not and self.kind not in _OPINIONS


@dataclass(frozen=True)
class Draft:
    """The values of a draft that clarity depends on; `budgets` are limits in words, such as `25 USD`."""

    task: str
    rules: tuple[DraftRule, ...] = ()
    max_iterations: int | None = None
    budgets: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    artifact: str = ""


@dataclass(frozen=True)
class Point:
    """The score of one dimension, 0 to 2, with its reason."""

    dimension: str
    score: int
    reason: str


@dataclass(frozen=True)
class Clarity:
    """The scores of a draft."""

    points: tuple[Point, ...]

    @property
    def total(self) -> int:
        return sum(point.score for point in self.points)

    @property
    def shape(self) -> Shape:
        return choose_shape(self.total)

    @property
    def missing(self) -> tuple[str, ...]:
        """Advice for each incomplete dimension, the lowest score first."""
        incomplete = sorted((point for point in self.points if point.score < 2), key=lambda point: point.score)
        return tuple(f"{point.dimension}: {_ADVICE[point.dimension]}" for point in incomplete)


_ADVICE = {
    "outcome": "say what will be true, with a number or a rule that a machine decides",
    "scope": "name the files that may change, in the task or with --loop-allow",
    "constraints": "say what must stay as it is, with must_not rules or a budget",
    "success": "verify it in a second way: tests and a linter, or tests and a measurement",
    "done": "have at least one rule that blocks, and a cap on iterations",
}


def score_clarity(draft: Draft) -> Clarity:
    """Score a draft in five dimensions; rules and limits count as much as the words of the task."""
    return Clarity(
        (
            Point("outcome", *_score_outcome(draft)),
            Point("scope", *_score_scope(draft)),
            Point("constraints", *_score_constraints(draft)),
            Point("success", *_score_success(draft)),
            Point("done", *_score_done(draft)),
        )
    )


def choose_shape(total: int) -> Shape:
    """Return the shape for a total of ten points."""
    return Shape.TOOL if total >= MIN_TOOL_SCORE else Shape.COLLEAGUE if total >= MIN_CLEAR_SCORE else Shape.UNCLEAR


def find_strictest_shape(shapes: Iterable[Shape]) -> Shape:
    """Return the strictest of several shapes."""
    return max(shapes, key=list(Shape).index)


def _score_outcome(draft: Draft) -> tuple[int, str]:
    if decisive := sum(rule.is_decisive for rule in draft.rules):
        return 2, f"{format_count(decisive, 'rule')} that a machine decides"
    if METRIC.search(draft.task):
        return 2, "the task names a number"
    if draft.rules or find_concrete_objects(draft.task):
        return 1, "something is named, and no machine decides it"
    return 0, "nothing that could be true in the end is named"


def _score_scope(draft: Draft) -> tuple[int, str]:
    if place := draft.artifact or ", ".join(draft.allow):
        return 2, f"only {place} may change"
    if path := PATH.search(draft.task):
        return 2, f"the task names {path[0]}"
    if words := find_content_words(draft.task):
        return 1, f"the task is about {words[0]}, and every file may change"
    return 0, "no part of the project is named"


def _score_constraints(draft: Draft) -> tuple[int, str]:
    forbidden = sum(rule.must_not for rule in draft.rules)
    word = _CONSTRAINT.search(draft.task)
    constraints = [
        *([format_count(forbidden, "must-not rule")] if forbidden else []),
        *([f"edits only in {', '.join(draft.allow)}"] if draft.allow else []),
        *([f"`{word[0]}` in the task"] if word else []),
        *([f"a budget of {', '.join(draft.budgets)}"] if draft.budgets else []),
    ]
    return min(2, len(constraints)), "; ".join(constraints) or "nothing limits how it is done"


def _score_success(draft: Draft) -> tuple[int, str]:
    kinds = list(dict.fromkeys(rule.kind for rule in draft.rules if not rule.must_not))
    return min(2, len(kinds)), f"verified by {', '.join(kinds)}" if kinds else "nothing verifies it"


def _score_done(draft: Draft) -> tuple[int, str]:
    if any(rule.is_decisive for rule in draft.rules) and draft.max_iterations:
        return 2, f"a rule blocks until it passes, in at most {draft.max_iterations} iterations"
    if any(rule.is_blocking and not rule.must_not for rule in draft.rules):
        gap = "no machine decides it" if draft.max_iterations else "nothing caps the iterations"
        return 1, f"a rule blocks until it passes, and {gap}"
    return 0, "no rule says when it is done"
