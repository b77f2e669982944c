"""Score the clarity of a draft, and derive the shape of the run from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import format_count, list_names
from pytest_loop.inference.task_intent import METRIC, PATH, find_concrete_objects, find_content_words

MIN_TOOL_SCORE = 8
MIN_CLEAR_SCORE = 5
SHOWN_RULES = 2
# Kinds of checks that an agent or a person decides.
_OPINIONS = ("judge", "sentence", "manual")
_CONSTRAINT = re.compile(
    r"(?:[<\u2264]=?|\b(?:under|below|at most|no more than|(?:less|fewer) than))"
    r"\s?\d[\d,]{0,9} ?(?:loc|lines?|words|files)\b"
    r"|\b(?:without|only|must not|mustn't|do not|don't|never|at most|no more than|no (?:new|other|extra|additional))\b"
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
    """A rule of a draft; its kind is the key of its check, `tests` for a Python test, or `sentence`.

    `is_default` marks a rule of a built-in template: it says nothing about this very task.
    """

    id: str
    kind: str = "tests"
    is_blocking: bool = True
    must_not: bool = False
    is_default: bool = False

    @property
    def is_decisive(self) -> bool:
        """Whether a machine decides it and the run cannot succeed without it."""
        return self.is_blocking and not self.must_not and self.kind not in _OPINIONS


@dataclass(frozen=True)
class ClarityFacts:
    """The values of a draft that clarity depends on.

    `limits` are the limits that the user has set, in words, such as `5 USD`; defaults are left out.
    `artifact` is the document to edit, `is_artifact_named` whether the user named it.
    """

    task: str
    rules: tuple[DraftRule, ...] = ()
    limits: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    artifact: str = ""
    is_artifact_named: bool = True

    @property
    def decisive_rules(self) -> tuple[DraftRule, ...]:
        """The rules about this task that a machine decides."""
        return tuple(rule for rule in self.rules if rule.is_decisive and not rule.is_default)


@dataclass(frozen=True)
class DimensionScore:
    """The score of one dimension, 0 to 2, with its reason."""

    dimension: str
    score: int
    reason: str


@dataclass(frozen=True)
class Clarity:
    """The scores of a draft."""

    points: tuple[DimensionScore, ...]

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
    "scope": "name the files that may change, in the task, with --loop-allow or with --loop-artifact",
    "constraints": "say what must stay as it is, with must_not rules, --loop-allow or a limit of your own",
    "success": "verify it in a second way: tests and a linter, or tests and a measurement",
    "done": "have at least one rule about this task that blocks until it passes",
}


def score_clarity(facts: ClarityFacts) -> Clarity:
    """Score a draft in five dimensions by what the user said: words of the task, rules and options, not defaults."""
    return Clarity(
        (
            DimensionScore("outcome", *_score_outcome(facts)),
            DimensionScore("scope", *_score_scope(facts)),
            DimensionScore("constraints", *_score_constraints(facts)),
            DimensionScore("success", *_score_success(facts)),
            DimensionScore("done", *_score_done(facts)),
        )
    )


def choose_shape(total: int) -> Shape:
    """Return the shape for a total of ten points."""
    return Shape.TOOL if total >= MIN_TOOL_SCORE else Shape.COLLEAGUE if total >= MIN_CLEAR_SCORE else Shape.UNCLEAR


def find_strictest_shape(shapes: Iterable[Shape]) -> Shape:
    """Return the strictest of several shapes."""
    return max(shapes, key=list(Shape).index)


def _score_outcome(facts: ClarityFacts) -> tuple[int, str]:
    if rules := facts.decisive_rules:
        return 2, f"{format_count(len(rules), 'rule')} that a machine decides: {_list_ids(rules)}"
    if number := METRIC.search(facts.task):
        return 2, f"`{number[0].strip()}` in the task"
    if any(rule.is_default for rule in facts.rules):
        return 1, "a template judges, and the task names no result of its own"
    if objects := find_concrete_objects(facts.task):
        return 1, f"`{objects[0]}` in the task, and no machine decides it"
    if facts.rules:
        return 1, f"{_list_ids(facts.rules)}, and no machine decides it"
    return 0, "nothing that could be true in the end is named"


def _score_scope(facts: ClarityFacts) -> tuple[int, str]:
    name = PurePosixPath(facts.artifact).name
    if facts.artifact and facts.is_artifact_named:
        return 2, f"only {facts.artifact} may change"
    if facts.allow:
        return 2, f"only {', '.join(facts.allow)} may change"
    if path := PATH.search(facts.task):
        return 2, f"`{path[0]}` in the task"
    if words := find_content_words(facts.task):
        place = f"{name} is only a default" if name else "every file may change"
        return 1, f"`{words[0]}` in the task, and {place}"
    if name:
        return 1, f"one document, and {name} is only a default"
    return 0, "no part of the project is named"


def _score_constraints(facts: ClarityFacts) -> tuple[int, str]:
    forbidden = sum(rule.must_not for rule in facts.rules)
    words = dict.fromkeys(match[0].lower() for match in _CONSTRAINT.finditer(facts.task))
    constraints = [
        *([format_count(forbidden, "must-not rule")] if forbidden else []),
        *([f"edits only in {', '.join(facts.allow)}"] if facts.allow else []),
        *(f"`{word}` in the task" for word in words),
        *([f"a limit of {', '.join(facts.limits)}"] if facts.limits else []),
    ]
    return min(2, len(constraints)), "; ".join(constraints) or "nothing that you said limits how it is done"


def _score_success(facts: ClarityFacts) -> tuple[int, str]:
    kinds = list(dict.fromkeys(rule.kind for rule in facts.rules if not rule.must_not))
    return min(2, len(kinds)), f"verified by {', '.join(kinds)}" if kinds else "nothing verifies it"


def _score_done(facts: ClarityFacts) -> tuple[int, str]:
    blocking = [rule for rule in facts.rules if rule.is_blocking and not rule.must_not]
    if rules := facts.decisive_rules:
        return 2, f"it is done when {_list_ids(rules)} {'passes' if len(rules) == 1 else 'pass'}"
    if any(rule.is_decisive for rule in blocking):
        return 1, "the template says when it is done, and the task does not"
    if blocking:
        return 1, f"{_list_ids(blocking)} blocks, and no machine decides it"
    return 0, "no rule says when it is done"


def _list_ids(rules: Sequence[DraftRule]) -> str:
    return list_names([shorten(rule.id, 60) for rule in rules], SHOWN_RULES)
