"""Classify the kind of work that a task asks for."""

from __future__ import annotations

import re
from enum import Enum


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
    "standard library. Say in one line what you looked at and why it does not do; then build the smallest thing that "
    "makes the rules pass.",
    Workflow.DEBUG: "Find the cause before you change anything: reproduce the failure, name the line that is wrong and "
    "why. If you are less than 70 % sure, look further instead of trying something. Mend the cause; a workaround does "
    "not count.",
    Workflow.REFACTOR: "Delete before you redesign: what nobody uses goes first, what stands twice becomes one. Only "
    "then change the shape of what is left, in steps after each of which everything still passes.",
}
_PATTERNS: dict[Workflow, str] = {
    Workflow.BUILD: r"add|implement\w*|create|introduce|write|build an?|generate|new feature|support",
    Workflow.DEBUG: r"fix\w*|debug\w*|broken|errors?|fail\w*|bugs?|crash\w*|repair|mend|resolve|green",
    Workflow.REFACTOR: r"refactor\w*|clean(?:ing)? up|reorgani[sz]\w*|restructur\w*|migrat\w*|simplif\w*|rename|extract"
    r"|upgrad\w*",
}


def classify_workflow(task: str) -> Workflow:
    """Return the workflow of the first word that names one; REFACTOR if none does."""
    matches = [
        (match.start(), workflow)
        for workflow, pattern in _PATTERNS.items()
        if (match := re.search(rf"\b(?:{pattern})\b", task, re.IGNORECASE))
    ]
    return min(matches)[1] if matches else Workflow.REFACTOR
