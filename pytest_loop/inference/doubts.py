"""Reasons not to be certain of an inferred criterion, and whether a person can settle them with a yes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_loop.inference.candidate_selection import TRIVIAL_REASON, Choice
from pytest_loop.inference.command_candidate import Confidence, Goal
from pytest_loop.inference.coverage_criteria import find_coverage_pattern
from pytest_loop.inference.inferred_criteria import build_tests_exist_criterion
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import Criterion
from pytest_loop.inference.task_intent import Intent, is_measured
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.inference.tool_purposes import Purpose

NO_TESTS = "there are no tests yet: the agent has to write them"
_DOCUMENT = re.compile(r"\breadme\b|\.md\b|\b(?:guide|tutorial|changelog|manual)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Doubt:
    """A reason for the user not to be certain, the highest confidence that it allows, and whether a yes settles it."""

    limit: Confidence
    reason: str = ""
    is_warning: bool = False
    can_be_settled: bool = False


@dataclass(frozen=True)
class Doubts:
    """The doubts about the commands that were chosen for a task."""

    task: ParsedTask
    intent: Intent
    project: Project

    def list_doubts(self, choices: Sequence[Choice]) -> Iterator[Doubt]:
        """Yield every doubt."""
        if self.intent.is_ambiguous:
            yield Doubt(Confidence.MEDIUM)
        if self.has_unmeasured_completion:
            yield Doubt(Confidence.LOW, f"nothing in the project measures `{self.task.completion}`")
        if not choices:
            yield Doubt(Confidence.LOW, "nothing in the project verifies this: only a change can be seen")
        covered = [choice.chosen[0].purpose for choice in choices]
        is_gate = self.intent.goal is Goal.REGRESSION_GATE
        needed = self.intent.demanded if is_gate else self.intent.purposes
        missing = [purpose.value for purpose in needed if purpose not in covered]
        if missing and choices:
            reason = f"nothing in the project verifies this: {', '.join(missing)}"
            yield Doubt(Confidence.LOW, reason, is_warning=True, can_be_settled=True)
        for choice in choices:
            yield _build_choice_doubt(choice)
            yield from self._list_purpose_doubts(choice)

    def _list_purpose_doubts(self, choice: Choice) -> Iterator[Doubt]:
        first = choice.chosen[0]
        if first.purpose is Purpose.COVERAGE and not find_coverage_pattern(first, self.project):
            yield Doubt(Confidence.MEDIUM, f"`{first.command}` prints no known number: it has to pass", is_warning=True)
        if first.purpose is Purpose.DOCS and _DOCUMENT.search(self.task.task):
            yield Doubt(Confidence.LOW, f"`{first.command}` says nothing about documents", is_warning=True)
        is_feature = self.intent.goal is Goal.IMPLEMENT_FEATURE
        # A script of a package may test in any way, without files that look like tests.
        is_script = first.family == "node" and first.is_solid
        if first.purpose is Purpose.TEST and self.build_tests_criterion(choice) and (is_feature or not is_script):
            limit = Confidence.MEDIUM if is_feature else Confidence.LOW
            yield Doubt(limit, NO_TESTS, is_warning=True)

    def build_tests_criterion(self, choice: Choice) -> Criterion | None:
        """Build the criterion that tests exist; None if the project has tests, or folders that were not listed."""
        candidate = choice.chosen[0]
        has_tests = bool(self.project.find_tests() or self.project.unseen)
        return None if has_tests else build_tests_exist_criterion(candidate.family, (candidate.source,))

    @property
    def has_unmeasured_completion(self) -> bool:
        """Whether the task has a condition that no command decides."""
        return bool(self.task.completion) and not is_measured(self.task.completion)


def _build_choice_doubt(choice: Choice) -> Doubt:
    """Build the doubt that a choice itself raises; with a high confidence it limits nothing."""
    first = choice.chosen[0]
    if any(candidate.is_trivial for candidate in choice.chosen):
        reason = f"`{first.command}` in {first.source.path} judges nothing: {TRIVIAL_REASON}"
        return Doubt(choice.confidence, reason)
    if choice.opposing:
        other = choice.opposing[0]
        reason = f"{first.source.path} says `{first.command}`, {other.source.path} says `{other.command}`"
    else:
        reason = f"`{first.command}` is a guess: nothing in the project names it"
    return Doubt(choice.confidence, reason, can_be_settled=True)
