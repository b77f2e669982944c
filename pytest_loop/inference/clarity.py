"""How clear a draft is: ten points with a reason for each, the shape that follows, and when somebody is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.task_words import METRIC, PATH, find_concrete_objects, find_content_words
from pytest_loop.inference.tool_purposes import split_names

RUNS_ALONE = 8
IS_CLEAR = 5
# What an agent or a person decides, and not a machine.
_OPINION = split_names("judge sentence manual")
_CONSTRAINT = re.compile(
    r"\b(?:without|only|must not|mustn't|do not|don't|never|at most|no more than|no (?:new|other|extra|additional))\b"
    r"|\b(?:keep|stays?|existing|unchanged|backwards? compatible|preserv\w+)\b",
    re.IGNORECASE,
)


class Shape(str, Enum):
    """How a run is carried out: alone, with questions, or not at all."""

    TOOL = "tool"
    COLLEAGUE = "colleague"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class DraftRule:
    """A rule of a draft: its kind is the key of its check, `tests` for a Python test, `sentence` for a sentence."""

    id: str
    kind: str = "tests"
    is_blocking: bool = True
    must_not: bool = False

    @property
    def is_decided_by_machine(self) -> bool:
        return self.kind not in _OPINION


@dataclass(frozen=True)
class Draft:
    """What is going to happen, in plain values: `budgets` are the limits in words, such as `25 USD`."""

    task: str
    rules: tuple[DraftRule, ...] = ()
    max_iterations: int | None = None
    budgets: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    artifact: str = ""


@dataclass(frozen=True)
class Point:
    """One dimension of clarity: nothing, something, or all that is needed."""

    dimension: str
    score: int
    reason: str


@dataclass(frozen=True)
class Clarity:
    """The points of a draft."""

    points: tuple[Point, ...]

    @property
    def total(self) -> int:
        return sum(point.score for point in self.points)

    @property
    def shape(self) -> Shape:
        return choose_shape(self.total)

    @property
    def missing(self) -> tuple[str, ...]:
        """What would make it clearer, the emptiest dimensions first."""
        open_ = sorted((point for point in self.points if point.score < 2), key=lambda point: point.score)
        return tuple(f"{point.dimension}: {_ADVICE[point.dimension]}" for point in open_)


_ADVICE = {
    "outcome": "say what will be true, with a number or a rule that a machine decides",
    "scope": "name the files that may change, in the task or with --loop-allow",
    "constraints": "say what must stay as it is, with must_not rules or a budget",
    "success": "verify it in a second way: tests and a linter, or tests and a measurement",
    "done": "have at least one rule that blocks, and a cap on iterations",
}


def score_clarity(draft: Draft) -> Clarity:
    """The points of a draft as it is resolved: what rules and limits say counts as much as the words of the task."""
    return Clarity((_outcome(draft), _scope(draft), _constraints(draft), _success(draft), _done(draft)))


def choose_shape(points: int) -> Shape:
    """The shape that ten points of clarity come to."""
    return Shape.TOOL if points >= RUNS_ALONE else Shape.COLLEAGUE if points >= IS_CLEAR else Shape.UNCLEAR


def find_strictest_shape(shapes: Iterable[Shape]) -> Shape:
    """Of several opinions the most careful one."""
    return max(shapes, key=list(Shape).index)


def _decisive(draft: Draft) -> list[DraftRule]:
    return [rule for rule in draft.rules if rule.is_blocking and not rule.must_not and rule.is_decided_by_machine]


def _outcome(draft: Draft) -> Point:
    if decisive := _decisive(draft):
        return Point("outcome", 2, f"{format_count(len(decisive), 'rule')} that a machine decides")
    if METRIC.search(draft.task):
        return Point("outcome", 2, "the task names a number")
    if draft.rules or find_concrete_objects(draft.task):
        return Point("outcome", 1, "something is named, and no machine decides it")
    return Point("outcome", 0, "nothing that could be true in the end is named")


def _scope(draft: Draft) -> Point:
    place = draft.artifact or ", ".join(draft.allow)
    if place:
        return Point("scope", 2, f"only {place} may change")
    if found := PATH.search(draft.task):
        return Point("scope", 2, f"the task names {found[0]}")
    said = find_content_words(draft.task)
    if said:
        return Point("scope", 1, f"the task is about {said[0]}, and every file may change")
    return Point("scope", 0, "no part of the project is named")


def _constraints(draft: Draft) -> Point:
    forbidden = [rule.id for rule in draft.rules if rule.must_not]
    found = [
        *([f"{format_count(len(forbidden), 'must-not rule')}"] if forbidden else []),
        *([f"edits only in {', '.join(draft.allow)}"] if draft.allow else []),
        *([f"`{said[0]}` in the task"] if (said := _CONSTRAINT.search(draft.task)) else []),
        *([f"a budget of {', '.join(draft.budgets)}"] if draft.budgets else []),
    ]
    return Point("constraints", min(2, len(found)), "; ".join(found) or "nothing limits how it is done")


def _success(draft: Draft) -> Point:
    kinds = list(dict.fromkeys(rule.kind for rule in draft.rules if not rule.must_not))
    if not kinds:
        return Point("success", 0, "nothing verifies it")
    return Point("success", min(2, len(kinds)), f"verified by {', '.join(kinds)}")


def _done(draft: Draft) -> Point:
    if _decisive(draft) and draft.max_iterations:
        return Point("done", 2, f"a rule blocks until it passes, in at most {draft.max_iterations} iterations")
    if any(rule.is_blocking and not rule.must_not for rule in draft.rules):
        lack = "no machine decides it" if draft.max_iterations else "nothing caps the iterations"
        return Point("done", 1, f"a rule blocks until it passes, and {lack}")
    return Point("done", 0, "no rule says when it is done")


# -- gates


class Confirm(str, Enum):
    """When somebody is asked: as the shape says, at every gate, or never."""

    SHAPE = "shape"
    ALWAYS = "always"
    NEVER = "never"


class GateDecision(str, Enum):
    """What happens at a gate."""

    PASS = "pass"  # noqa: S105 - not a password
    ASK = "ask"
    REFUSE = "refuse"


class Gate(str, Enum):
    """A turn of the run: the draft stands, an iteration is over, success is about to be claimed."""

    DRAFT = "G1"
    ITERATION = "G2"
    SUCCESS = "G3"


def render_iteration_question(iteration: int, most: int, left: int) -> str:
    """G2: an iteration is over."""
    return f"iteration {iteration} of {most} is over, {format_count(left, 'rule')} left: go on?"


def render_success_question(rules: int) -> str:
    """G3: it passes."""
    return f"{format_count(rules, 'rule')} judged, and it passes: is it done?"


def decide_gate(
    gate: Gate, shape: Shape, confirm: Confirm, *, is_agreed: bool, is_terminal: bool, skips_gates: bool = False
) -> GateDecision:
    """What happens at a gate; who agreed beforehand is not asked, and where nobody is, only the first gate refuses.

    `skips_gates` are words in the task: they leave out the questions on the way, and never the one about the draft,
    which is asked whatever the shape is.
    """
    if shape is Shape.UNCLEAR:
        return GateDecision.REFUSE
    if is_agreed or confirm is Confirm.NEVER:
        return GateDecision.PASS
    if gate is Gate.DRAFT:
        return GateDecision.ASK if is_terminal else GateDecision.REFUSE
    is_alone = confirm is Confirm.SHAPE and shape is Shape.TOOL
    return GateDecision.PASS if is_alone or skips_gates or not is_terminal else GateDecision.ASK
