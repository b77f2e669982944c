"""Assess how hard a task is to undo, and classify its workflow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from pytest_loop.inference.clarity import DraftRule
from pytest_loop.inference.task_intent import PATH

MIN_MUST_NOT_RULES = 2


class Reversal(str, Enum):
    """How long an undo takes: under a minute, a few minutes, or hours and more."""

    QUICK = "2A"
    SLOW = "2B"
    HARD = "1"


@dataclass(frozen=True)
class Reversibility:
    """How hard a task is to undo, the reason, and the steps before it starts."""

    kind: Reversal
    reason: str
    pre_check: tuple[str, ...] = ()


_HARD = re.compile(
    r"\b(?:(?:db|database) )?schemas?\b|\b(?:db|database) (?:tables?|columns?|index(?:es)?|constraints?|triggers?)\b"
    r"|\b(?:drop|alter) (?:table|column)s?\b|\b(?:(?:db|database|data) )?migrations?\b(?! to)"
    r"|\bpublic (?:api|interface)s?\b|\bbreaking changes?\b|\bwire format\b|\bdeploy\w*\b|\bpublish\w*\b|\bproduction\b"
    r"|\bdelete (?:\w+ )?(?:data|users|records|accounts)\b",
    re.IGNORECASE,
)
_HARD_PATH = re.compile(
    r"(?:^|/)(?:migrations|alembic)/|\.sql$|\.proto$|(?:^|/)(?:openapi|swagger|schema)\.\w+$", re.IGNORECASE
)
_SLOW = re.compile(
    r"\b(?:dependenc\w+|upgrad\w+|bump|refactor\w*|restructur\w*|reorgani[sz]\w*|extract|split|migrat\w+|rewrit\w+)\b",
    re.IGNORECASE,
)
_QUICK = re.compile(
    r"\b(?:config\w*|settings?|rename|typos?|comments?|docstrings?|readme|docs?|documentation|formatting|lint\w*|style)\b",
    re.IGNORECASE,
)
_QUICK_PATH = re.compile(r"\.(?:md|rst|txt|ini|cfg|toml|ya?ml)$", re.IGNORECASE)
_PRE_CHECK = (
    "write down three to five ways in which this task could be misread, and which of them is meant",
    "tighten the task until only that one is left",
    f"name at least {MIN_MUST_NOT_RULES} things that must not become true, as must_not rules",
    "verify every criterion by something that runs, so that none rests on an assumption",
    "score the draft once more",
)


def assess_reversibility(task: str, paths: Iterable[str] = ()) -> Reversibility:
    """Assess a task by its words, by the paths or globs it may change, and by the paths that it names."""
    allowed = list(paths)
    mentioned = [match[0] for match in PATH.finditer(task)]
    hard_path = next(filter(_HARD_PATH.search, (*allowed, *mentioned)), "")
    if hard := hard_path or _find_words(_HARD, task):
        return Reversibility(Reversal.HARD, f"{hard}: others build on it", _PRE_CHECK)
    quick, slow = _find_words(_QUICK, task), _find_words(_SLOW, task)
    is_plain = bool(allowed) and all(_QUICK_PATH.search(path) for path in allowed)
    if (quick or is_plain) and not slow:
        return Reversibility(Reversal.QUICK, f"{quick or allowed[0]}: undone in a minute")
    return Reversibility(Reversal.SLOW, f"{slow or 'code'}: undone from a checkpoint")


def _find_words(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[0] if match else ""


def find_open_pre_checks(kind: Reversal, rules: Sequence[DraftRule]) -> tuple[str, ...]:
    """Return what a draft that is hard to undo still lacks, as far as it can be counted."""
    if kind is not Reversal.HARD:
        return ()
    forbidden = sum(rule.must_not for rule in rules)
    assumed = [rule.id for rule in rules if rule.kind == "manual"]
    return (
        *((f"{MIN_MUST_NOT_RULES} must_not rules, found {forbidden}",) if forbidden < MIN_MUST_NOT_RULES else ()),
        *((f"something that runs instead of an assumption for {', '.join(assumed)}",) if assumed else ()),
    )


# -- workflow


class Workflow(str, Enum):
    """The kind of work of a task."""

    BUILD = "A"
    DEBUG = "B"
    REFACTOR = "C"

    @property
    def instruction(self) -> str:
        """The first instruction to an agent in its prompt."""
        return _INSTRUCTIONS[self]


_INSTRUCTIONS = {
    Workflow.BUILD: "Before you write something new, look for it: in this project, in its dependencies, in the "
    "standard library. Say in one line what you looked at and why it does not do; then build the smallest thing that "
    "makes the rules pass.",
    Workflow.DEBUG: "Find the cause before you change anything: reproduce the failure, name the line that is wrong and "
    "why. If you are less than 70 % sure, look further instead of trying something. Mend the cause; a workaround does "
    "not count.",
    Workflow.REFACTOR: "Delete before you redesign: what nobody uses goes first, what stands twice becomes one. Only "
    "then change the shape of what is left, in steps after each of which everything still passes.",
}
_WORDS: dict[Workflow, str] = {
    Workflow.BUILD: r"add|implement\w*|create|introduce|write|build an?|generate|new feature|support",
    Workflow.DEBUG: r"fix\w*|debug\w*|broken|errors?|fail\w*|bugs?|crash\w*|repair|mend|resolve|green",
    Workflow.REFACTOR: r"refactor\w*|clean(?:ing)? up|reorgani[sz]\w*|restructur\w*|migrat\w*|simplif\w*|rename|extract"
    r"|upgrad\w*",
}


def classify_workflow(task: str) -> Workflow:
    """Return the workflow of the first word that names one; REFACTOR if none does."""
    matches = [
        (match.start(), workflow)
        for workflow, words in _WORDS.items()
        if (match := re.search(rf"\b(?:{words})\b", task, re.IGNORECASE))
    ]
    return min(matches)[1] if matches else Workflow.REFACTOR
