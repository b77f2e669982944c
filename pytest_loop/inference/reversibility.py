"""What a task touches: how hard it is to take back, and whether it builds, mends or reshapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from pytest_loop.inference.clarity import DraftRule
from pytest_loop.inference.task_words import PATH

FEWEST_MUST_NOTS = 2


class Reversal(str, Enum):
    """How long it takes to undo: under a minute, a few minutes, or hours and more."""

    QUICK = "2A"
    SLOW = "2B"
    HARD = "1"


@dataclass(frozen=True)
class Reversibility:
    """How hard a scope is to take back, why, and what that asks for."""

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
    f"name at least {FEWEST_MUST_NOTS} things that must not become true, as must_not rules",
    "verify every criterion by something that runs, so that none rests on an assumption",
    "score the draft once more",
)


def assess_reversibility(task: str, paths: Iterable[str] = ()) -> Reversibility:
    """How hard it is to take back what a task does to these paths, or globs, and to those that it names itself."""
    touched = list(paths)
    named = (found[0] for found in PATH.finditer(task))
    hard = next((path for path in (*touched, *named) if _HARD_PATH.search(path)), "") or _said(_HARD, task)
    if hard:
        return Reversibility(Reversal.HARD, f"{hard}: others build on it", _PRE_CHECK)
    quick = _said(_QUICK, task)
    is_plain = bool(touched) and all(_QUICK_PATH.search(path) for path in touched)
    if (quick or is_plain) and not _said(_SLOW, task):
        return Reversibility(Reversal.QUICK, f"{quick or touched[0]}: undone in a minute")
    return Reversibility(Reversal.SLOW, f"{_said(_SLOW, task) or 'code'}: undone from a checkpoint")


def _said(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""


def find_open_pre_checks(kind: Reversal, rules: Sequence[DraftRule]) -> tuple[str, ...]:
    """What a draft of a class that is hard to take back still lacks, as far as that can be counted."""
    if kind is not Reversal.HARD:
        return ()
    forbidden = sum(rule.must_not for rule in rules)
    assumed = [rule.id for rule in rules if rule.kind == "manual"]
    return (
        *((f"{FEWEST_MUST_NOTS} must_not rules, found {forbidden}",) if forbidden < FEWEST_MUST_NOTS else ()),
        *((f"something that runs instead of an assumption for {', '.join(assumed)}",) if assumed else ()),
    )


# -- the workflow


class Workflow(str, Enum):
    """What kind of work a task is."""

    BUILD = "A"
    DEBUG = "B"
    REFACTOR = "C"

    @property
    def instruction(self) -> str:
        """What an agent has to do before anything else, for its prompt."""
        return _GATES[self]


_GATES = {
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
    """The kind of work that the first telling word names; what names none changes something that is there."""
    found = [
        (match.start(), kind)
        for kind, words in _WORDS.items()
        if (match := re.search(rf"\b(?:{words})\b", task, re.IGNORECASE))
    ]
    return min(found)[1] if found else Workflow.REFACTOR
