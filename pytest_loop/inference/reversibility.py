"""Assess how hard a task is to undo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from pytest_loop.inference.clarity import DraftRule
from pytest_loop.inference.task_intent import PATH

MIN_MUST_NOT_RULES = 2


class UndoEffort(str, Enum):
    """The time that an undo takes: under a minute, a few minutes, or hours and more."""

    QUICK = "2A"
    SLOW = "2B"
    HARD = "1"


@dataclass(frozen=True)
class Reversibility:
    """How hard a task is to undo, the reason, and the checks before a hard one starts."""

    kind: UndoEffort
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


def assess_reversibility(task: str, paths: Iterable[str] = (), *, is_separate: bool = False) -> Reversibility:
    """Assess a task by its words, by the paths or globs it may change, and by the paths that it names.

    A document that `is_separate` is kept in the folder of its run: nothing uses it until it is copied.
    """
    allowed = list(paths)
    if is_separate:
        return Reversibility(UndoEffort.QUICK, "a new document, apart from the project")
    mentioned = [match[0] for match in PATH.finditer(task)]
    hard_path = next(filter(_HARD_PATH.search, (*allowed, *mentioned)), "")
    if hard := hard_path or _find_words(_HARD, task):
        return Reversibility(UndoEffort.HARD, f"{hard}: others build on it", _PRE_CHECK)
    quick, slow = _find_words(_QUICK, task), _find_words(_SLOW, task)
    has_quick_paths = bool(allowed) and all(_QUICK_PATH.search(path) for path in allowed)
    if (quick or has_quick_paths) and not slow:
        return Reversibility(UndoEffort.QUICK, f"{quick or allowed[0]}: undone in a minute")
    return Reversibility(UndoEffort.SLOW, f"{slow or 'code'}: undone from a checkpoint")


def _find_words(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[0] if match else ""


def find_open_pre_checks(kind: UndoEffort, rules: Sequence[DraftRule]) -> tuple[str, ...]:
    """Return the pre-checks that a draft does not meet, as far as its rules show; empty unless the undo is hard."""
    if kind is not UndoEffort.HARD:
        return ()
    forbidden = sum(rule.must_not for rule in rules)
    assumed = [rule.id for rule in rules if rule.kind == "manual"]
    return (
        *((f"{MIN_MUST_NOT_RULES} must_not rules, found {forbidden}",) if forbidden < MIN_MUST_NOT_RULES else ()),
        *((f"something that runs instead of an assumption for {', '.join(assumed)}",) if assumed else ()),
    )
