"""Score the clarity of a draft, derive the shape of the run, and decide when it asks for confirmation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.task_intent import METRIC, PATH, find_concrete_objects, find_content_words

RUNS_ALONE = 8
IS_CLEAR = 5
# Kinds of checks that an agent or a person decides.
_OPINIONS = ("judge", "sentence", "manual")
_CONSTRAINT = re.compile(
    r"\b(?:without|only|must not|mustn't|do not|don't|never|at most|no more than|no (?:new|other|extra|additional))\b"
    r"|\b(?:keep|stays?|existing|unchanged|backwards? compatible|preserv\w+)\b",
    re.IGNORECASE,
)


class Shape(str, Enum):
    """How a run is carried out: alone, with questions, or not at all; the strictest last."""

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
    return Shape.TOOL if total >= RUNS_ALONE else Shape.COLLEAGUE if total >= IS_CLEAR else Shape.UNCLEAR


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


# -- gates


class Confirm(str, Enum):
    """When a person is asked: as the shape says, at every gate, or never."""

    SHAPE = "shape"
    ALWAYS = "always"
    NEVER = "never"


class GateDecision(str, Enum):
    """The decision at a gate: pass, ask a person, or refuse."""

    PASS = "pass"  # noqa: S105 - not a password
    ASK = "ask"
    REFUSE = "refuse"


class Gate(str, Enum):
    """A point at which a person may be asked: before the run, after an iteration, before success."""

    DRAFT = "G1"
    ITERATION = "G2"
    SUCCESS = "G3"


def render_iteration_question(iteration: int, max_iterations: int, open_rules: int) -> str:
    """Return the question after an iteration."""
    return f"iteration {iteration} of {max_iterations} is over, {format_count(open_rules, 'rule')} left: go on?"


def render_success_question(rules: int) -> str:
    """Return the question before success."""
    return f"{format_count(rules, 'rule')} judged, and it passes: is it done?"


def decide_gate(
    gate: Gate, shape: Shape, confirm: Confirm, *, is_agreed: bool, is_terminal: bool, skips_gates: bool = False
) -> GateDecision:
    """Decide whether a run passes a gate, asks or stops; without a terminal only the draft is refused.

    `skips_gates` comes from the words of the task: it skips questions during the run, never the one about the draft.
    """
    if shape is Shape.UNCLEAR:
        return GateDecision.REFUSE
    if is_agreed or confirm is Confirm.NEVER:
        return GateDecision.PASS
    if gate is Gate.DRAFT:
        return GateDecision.ASK if is_terminal else GateDecision.REFUSE
    runs_alone = confirm is Confirm.SHAPE and shape is Shape.TOOL
    return GateDecision.PASS if runs_alone or skips_gates or not is_terminal else GateDecision.ASK
