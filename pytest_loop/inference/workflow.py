"""Classify the kind of work that a task asks for."""

from __future__ import annotations

import re
from enum import Enum

from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.task_intent import classify_task


class Workflow(str, Enum):
    """The kind of work of a task."""

    BUILD = "A"
    DEBUG = "B"
    REFACTOR = "C"

    @property
    def instruction(self) -> str:
        """The first instruction in the agent's prompt."""
        return _INSTRUCTIONS[self]


_INSTRUCTIONS = {
    Workflow.BUILD: "Before you write something new, look for it: in this project, in its dependencies, in the "
    "standard library. Say in one line what you found and why it is not enough; then build the smallest thing that "
    "makes the rules pass.",
    Workflow.DEBUG: "Find the cause before you change anything: reproduce the failure, name the line that is wrong and "
    "why. If you are less than 70 % sure, look further instead of trying something. Fix the cause; a workaround does "
    "not count.",
    Workflow.REFACTOR: "Delete before you redesign: remove what is not used, merge what exists twice. Only then change "
    "the structure of the rest, in steps after each of which everything still passes.",
}
# The word error, unless it describes a subject: a page about errors is new work.
_ERRORS = r"(?<!handle )(?<!handling )errors?(?! (?:handling|responses?|codes?|messages?|pages?|classes))"
_PARTS = r"(?:function|method|class|module|helper|component|package|base class|interface|constant)s?"
_PATTERNS: dict[Workflow, str] = {
    Workflow.BUILD: r"add|implement\w*|create|introduce|write|draft|compose|design|document|describe|generate"
    r"|build (?:an?|new)|new feature|support|coverage",
    Workflow.DEBUG: rf"fix\w*|debug\w*|broken|{_ERRORS}|fail\w*|bugs?|crash\w*|repair|mend|resolve|green|flaky|passing"
    r"|investigate|(?:does|do)(?: not|n't) work",
    Workflow.REFACTOR: r"refactor\w*|clean(?:ing)?[ -]?up|tidy\w*|dead code|reorgani[sz]\w*|restructur\w*"
    rf"|migrat(?:e|es|ed|ing)|simplif\w*|renam(?:e|es|ing)|deduplicat\w*|split up|move \S+ (?:in)?to"
    rf"|extract (?:\w+ ){{0,3}}{_PARTS}",
}
_FAILING = (Goal.TEST_PASS, Goal.LINT_CLEAN, Goal.TYPE_CLEAN, Goal.BUILD_PASS, Goal.BUG_FIXED)


def classify_workflow(task: str) -> Workflow:
    """Return the workflow of the first word that names one.

    Without such a word, return DEBUG for a goal that fails until it is fixed, and BUILD for every other.
    """
    matches = [
        (match.start(), workflow)
        for workflow, pattern in _PATTERNS.items()
        if (match := re.search(rf"\b(?:{pattern})\b", task, re.IGNORECASE))
    ]
    if matches:
        return min(matches)[1]
    return Workflow.DEBUG if classify_task(task).goal in _FAILING else Workflow.BUILD
