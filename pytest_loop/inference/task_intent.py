"""The first layer: from the words of a task to the class of criterion that it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.task_words import find_concrete_objects
from pytest_loop.inference.tool_purposes import Purpose

DEFAULT_CAP = 10
LARGE_CAP = 20

# What each class needs; the build of a regression gate counts where there is one.
PURPOSES: dict[Goal, tuple[Purpose, ...]] = {
    Goal.TEST_PASS: (Purpose.TEST,),
    Goal.COVERAGE: (Purpose.COVERAGE,),
    Goal.TYPE_CLEAN: (Purpose.TYPES,),
    Goal.LINT_CLEAN: (Purpose.LINT,),
    Goal.BUILD_PASS: (Purpose.BUILD,),
    Goal.REGRESSION_GATE: (Purpose.TEST, Purpose.BUILD),
    Goal.IMPLEMENT_FEATURE: (Purpose.TEST,),
    Goal.DOCUMENTED: (Purpose.DOCS,),
    Goal.BUG_FIXED: (Purpose.TEST,),
}
EVERYTHING = (Purpose.BUILD, Purpose.TEST, Purpose.LINT)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_NEAR = r"[^.;\n]{0,40}"
_WELL = r"(?:pass(?:es|ing)?|succeeds?|green|clean|works?)"
_ILL = r"(?:fail(?:s|ed|ing|ures?)?|broken|red|flaky|errors?)"

# Classes that say by themselves what is measured.
_MEASURED: tuple[tuple[Goal, re.Pattern[str]], ...] = (
    (
        Goal.COVERAGE,
        _any(
            r"\bcoverage\b",
            r"\b(?:add|write|create|more) (?:(?:more|missing|unit|integration|some|the|new) )*tests?\b",
        ),
    ),
    (
        Goal.TYPE_CLEAN,
        _any(
            r"\btype(?:script)?[ -](?:errors?|check\w*|hints?|annotations?|safety|issues?)\b",
            r"\b(?:mypy|pyright|tsc|typecheck\w*)\b",
            r"\bfix (?:the |all )*(?:types|typing)\b",
            rf"\b(?:types|typing)\b{_NEAR}\b{_WELL}\b",
            rf"\b(?:migrat|convert|port)\w*\b{_NEAR}\bto typescript\b",
        ),
    ),
    (
        Goal.LINT_CLEAN,
        _any(
            r"\b(?:lint\w*|ruff|eslint|flake8|pylint|rubocop|clippy|golangci-lint|checkstyle|prettier|pre-commit)\b",
            r"\b(?:warnings|formatting|style (?:errors?|issues?|violations?))\b",
            r"\bfix (?:the |all )*(?:code )?style\b",
        ),
    ),
    (
        Goal.BUILD_PASS,
        _any(
            r"\b(?:fix|repair|unbreak|mend)\w*\b[^.;\n]{0,20}\b(?:build|compil\w+)\b",
            r"\bcompil(?:e|er|ation) errors?\b",
            rf"\b(?:build|compilation)\b[^.;\n]{{0,20}}\b(?:{_WELL}|{_ILL})\b",
            r"\b(?:make|get)\b[^.;\n]{0,30}\b(?:compile|build)s?\b",
            r"\bit (?:compiles|builds)\b",
            r"^\W{0,9}(?:build|compile)(?: (?:it|everything|all|the \w+))?\W{0,9}$",
        ),
    ),
    (
        Goal.TEST_PASS,
        _any(
            rf"\b(?:fix|repair|mend|{_WELL}|{_ILL})\b{_NEAR}\b(?:tests?|suite)\b",
            rf"\b(?:tests?|suite|pytest|jest|ci)\b{_NEAR}\b(?:{_WELL}|{_ILL})\b",
            r"^\W{0,9}(?:(?:it|all|everything|they) )?(?:(?:is|are) )?green\W{0,9}$",
        ),
    ),
    (
        Goal.DOCUMENTED,
        _any(
            r"\bdocument (?!store|database|model)",
            r"\bdocstrings?\b",
            rf"\b(?:add|write|update|improve|complete|extend)\b{_NEAR}\b(?:docs?|documentation|readme)\b",
        ),
    ),
)
_MOVING = _any(
    r"\b(?:refactor|restructur|reorgani[sz]|simplif|deduplicat|modulari[sz])\w*\b",
    r"\b(?:extract|rename|split|inline|move)\b",
)
_MIGRATING = _any(r"\b(?:migrat\w+|upgrad\w+|port|bump|convert)\b")
_MENDING = _any(
    r"\b(?:fix|resolv|clos|debug|solv|repair|mend)(?:e|es|ed|s|ing)?\b",
    r"\bbugs?\b|\bissue #?\d+|\bcrash\w*\b|\bregression\b",
)
_MAKING = _any(
    r"\b(?:implement|introduce|develop|support)\w*\b",
    r"\b(?:add|create|write|generate|make a|build an?|build new|new feature)\b",
)
# Verbs that say which class it is, and not what is measured; the one that comes first counts.
_MEANT: tuple[tuple[Goal, re.Pattern[str], tuple[Purpose, ...]], ...] = (
    (Goal.REGRESSION_GATE, _MOVING, PURPOSES[Goal.REGRESSION_GATE]),
    (Goal.REGRESSION_GATE, _MIGRATING, EVERYTHING),
    (Goal.BUG_FIXED, _MENDING, PURPOSES[Goal.BUG_FIXED]),
    (Goal.IMPLEMENT_FEATURE, _MAKING, PURPOSES[Goal.IMPLEMENT_FEATURE]),
)
# Where a task begins with one of these, what it says about tests later is a condition.
_LEADING = re.compile(rf"\W*(?:{_MOVING.pattern}|{_MIGRATING.pattern}|\bimplement\w*\b)", re.IGNORECASE)
_LARGE = _any(r"\b(?:entire|whole|all (?:files|modules|packages)|code ?base|everywhere|every (?:file|module))\b")


@dataclass(frozen=True)
class Threshold:
    """A number that has to be reached."""

    op: str
    value: float


@dataclass(frozen=True)
class Intent:
    """What a task is after.

    `because` are the words that say so. An ambiguous task names no class, and a gate is all that can be put up for it;
    `objects` are the concrete things that it names.
    """

    goal: Goal
    purposes: tuple[Purpose, ...]
    matched_words: str = ""
    is_ambiguous: bool = False
    objects: tuple[str, ...] = ()
    threshold: Threshold | None = None
    iteration_cap: int = DEFAULT_CAP


def classify_task(task: str, completion: str = "", files: Iterable[str] = ()) -> Intent:
    """What a task asks for: when it is done says more than what is to be done."""
    goal, purposes, because = _class(task, completion)
    is_large = goal is Goal.REGRESSION_GATE and because and _LARGE.search(task)
    return Intent(
        goal,
        purposes,
        because,
        is_ambiguous=not because,
        objects=find_concrete_objects(f"{task} {completion}", files),
        threshold=parse_coverage_threshold(f"{completion} {task}"),
        iteration_cap=LARGE_CAP if is_large else DEFAULT_CAP,
    )


def _class(task: str, completion: str) -> tuple[Goal, tuple[Purpose, ...], str]:
    """The class, what it needs, and the words that name it: none where nothing does."""
    measured = _measured(completion) or _measured(task)
    needed = tuple(dict.fromkeys(purpose for goal in measured for purpose in PURPOSES[goal]))
    is_leading = _LEADING.match(task) and Goal.TYPE_CLEAN not in measured
    if measured and not is_leading:
        return next(iter(measured)), needed, next(iter(measured.values()))
    found = [(match.start(), goal, match[0], wanted) for goal, verb, wanted in _MEANT if (match := verb.search(task))]
    if not found:
        return Goal.REGRESSION_GATE, EVERYTHING, ""
    _, goal, because, wanted = min(found)
    return goal, tuple(dict.fromkeys((*wanted, *needed))), because


def is_measured(text: str) -> bool:
    """Whether a text names something that a command of some kind decides."""
    return bool(_measured(text))


def _measured(text: str) -> dict[Goal, str]:
    """The classes that a text names, the first of them first, with the words that do."""
    found = [(match.start(), goal, match[0]) for goal, pattern in _MEASURED if (match := pattern.search(text))]
    return {goal: " ".join(said.split()) for _, goal, said in sorted(found, key=lambda one: one[0])}


_STRICT = (">", "above", "over", "more than")
_PERCENT = _any(
    r"coverage\D{0,30}?(?P<op>>=|>|\u2265|at least|above|over|more than)?"
    r"\s*(?P<value>\d{1,3}(?:\.\d+)?)\s*(?:%|percent)",
    r"(?P<share>\d{1,3}(?:\.\d+)?)\s*(?:%|percent) (?:\w+ ){0,2}coverage",
)


def parse_coverage_threshold(text: str) -> Threshold | None:
    """The share of lines that a text asks to be covered, in percent."""
    found = _PERCENT.search(text)
    value = float(found["value"] or found["share"]) if found else 0.0
    if not found or not 0 < value <= 100:
        return None
    return Threshold(">" if (found["op"] or "").lower() in _STRICT else ">=", value)
