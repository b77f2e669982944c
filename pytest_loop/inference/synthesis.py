"""Infer criteria for a task from all layers of a project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_loop.core.text.lengths import shorten
from pytest_loop.inference.candidate_selection import TRIVIAL_REASON, Choice, choose_candidates, choose_named
from pytest_loop.inference.command_candidate import (
    GOALS_WITH_NEW_TESTS,
    CommandCandidate,
    Confidence,
    Goal,
    Layer,
    SourceLine,
    find_weakest,
)
from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.coverage_criteria import CoverageGoal, find_part, read_coverage_threshold
from pytest_loop.inference.doubts import Doubt, Doubts
from pytest_loop.inference.inferred_criteria import (
    FindTool,
    adapt_to_installed_tools,
    assign_distinct_ids,
    build_change_criterion,
    build_criterion,
    find_installed_tool,
    find_whole_suite_targets,
    limit_to_named_tests,
)
from pytest_loop.inference.project_files import Project, is_loop_file
from pytest_loop.inference.proposal import Criterion, Proposal, RejectedCriterion
from pytest_loop.inference.sources import find_candidates
from pytest_loop.inference.sources.project_documents import UseCase, find_ci_demand, find_use_cases
from pytest_loop.inference.task_intent import ALL_CHECKS, PURPOSES, Intent, classify_task
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.inference.task_refusal import (
    ONLY_ENGLISH,
    Refusal,
    TaskAdvisor,
    find_gaps,
    is_foreign_language,
    limit_rewordings,
    refuse_command,
)
from pytest_loop.inference.tool_purposes import Purpose

_NO_TEST_COMMAND = "nothing in the project says how its tests are run"


def infer_criteria(task: ParsedTask, project: Project, find_tool: FindTool = find_installed_tool) -> Proposal | Refusal:
    """Propose criteria for a task that came without any, or explain why there are none."""
    return _Inference(task, project, find_tool).infer()


@dataclass(frozen=True)
class _Inference:
    """One inference; the layers are read once, when they are needed."""

    task: ParsedTask
    project: Project
    find_tool: FindTool

    @cached_property
    def intent(self) -> Intent:
        files = (path for path in self.project.files if not is_loop_file(path))
        return classify_task(self.task.task, self.task.completion, files)

    @cached_property
    def candidates(self) -> list[CommandCandidate]:
        return find_candidates(self.project)

    @cached_property
    def doubts(self) -> Doubts:
        return Doubts(self.task, self.intent, self.project)

    @property
    def advisor(self) -> TaskAdvisor:
        return TaskAdvisor(self.task, self.intent, self.project, self.candidates)

    def infer(self) -> Proposal | Refusal:
        if self.task.loop_command:
            return refuse_command(self.task, self.task.loop_command)
        if self.task.commands:
            return self._propose_commands(self.task.commands)
        if self.task.request in [candidate.command_line for candidate in self.candidates if not candidate.is_guess]:
            return self._propose_commands((self.task.request,))
        if use_cases := find_use_cases(self.project, self.task.text):
            return self._propose_use_cases(use_cases)
        if gaps := find_gaps(self.task, self.intent):
            tests = self.advisor.find_root_command(Purpose.TEST)
            if tests and is_foreign_language(self.task.request):
                return self._propose_tests_for_foreign_task(tests)
            return self.advisor.refuse_unclear(gaps)
        return self._propose_project_commands()

    def _propose_tests_for_foreign_task(self, command: str) -> Proposal:
        """Propose the project's tests, with a doubt, for a task that is not in English."""
        rewordings = (f"{self.task.request} until `{command}` passes", *self.advisor.suggest_rewordings())
        return replace(
            self._propose_commands((command,)),
            confidence=Confidence.LOW,
            rationale=(f"{ONLY_ENGLISH}: the task may ask for anything",),
            doubt=ONLY_ENGLISH,
            rewordings=limit_rewordings(rewordings),
        )

    def _propose_commands(self, commands: Sequence[str]) -> Proposal:
        """Propose the commands that the task spells out."""
        purposes = [_classify_task_command(command, self.intent) for command in commands]
        coverage_goal = CoverageGoal(self.intent.threshold) if self.intent.threshold else None
        source = SourceLine("the task")
        criteria = [
            build_criterion(CommandCandidate(command, purpose, Layer.TASK, source), self.project, coverage_goal)
            for command, purpose in zip(commands, purposes, strict=True)
        ]
        goal = classify_task(self.task.task).goal
        if goal not in GOALS_WITH_NEW_TESTS:
            command_goal = next(goal for goal, needed in PURPOSES.items() if purposes[0] in needed)
            goal = command_goal if self.intent.is_ambiguous else self.intent.goal
        names = " and ".join(f"`{command}`" for command in commands)
        return self._build_proposal(
            goal,
            criteria,
            Confidence.HIGH,
            rationale=(f"the task names {names}: nothing had to be inferred",),
        )

    def _propose_use_cases(self, use_cases: Sequence[UseCase]) -> Proposal:
        """Propose the acceptance criteria of the use cases that the task names, and their tests."""
        accepted = [
            Criterion(f"a.{case.id.lower()}.{number}", text, check=text, sources=(source,))
            for case in use_cases
            for number, (text, source) in enumerate(case.criteria, 1)
        ]
        choices = self._choose((Purpose.TEST,))
        names = [case.id for case in use_cases]
        tests = [limit_to_named_tests(criterion, self.project, names) for criterion in self._build_criteria(choices)]
        has_test_command = any(choice.confidence is not Confidence.LOW for choice in choices)
        return self._build_proposal(
            self.intent.goal if self.intent.matched_words else Goal.IMPLEMENT_FEATURE,
            [*accepted, *tests],
            Confidence.HIGH if has_test_command else Confidence.LOW,
            choices,
            rationale=(
                *(f"{case.source} has the acceptance criteria of {case.id}" for case in use_cases),
                *self._list_reasons(choices),
                *(() if choices else (_NO_TEST_COMMAND,)),
            ),
            warnings=self.project.problems,
            doubts=[] if has_test_command else [Doubt(Confidence.LOW, _NO_TEST_COMMAND)],
        )

    def _propose_project_commands(self) -> Proposal | Refusal:
        """Propose commands of the project for the goal of the task."""
        purposes, reasons = self._find_purposes()
        choices = self._choose(purposes)
        if self.intent.goal is Goal.REGRESSION_GATE:
            demanded = self.intent.demanded
            needed = [choice for choice in choices if not choice.is_guess or choice.chosen[0].purpose in demanded]
            choices = needed or choices
        criteria = self._build_criteria(choices)
        if not criteria and not self.project.is_versioned:
            return self.advisor.refuse_unverifiable()
        if not criteria:
            reasons = (*reasons, "nothing in the project verifies this: only a change can be seen")
            criteria = [build_change_criterion()]
        doubts = list(self.doubts.list_doubts(choices))
        return self._build_proposal(
            self.intent.goal,
            [*criteria, *self._list_additions(choices)],
            find_weakest(doubt.limit for doubt in doubts),
            choices,
            rationale=(*reasons, *self._list_reasons(choices)),
            warnings=(*self.project.problems, *(doubt.reason for doubt in doubts if doubt.is_warning)),
            unmeasured=(self.task.completion,) if self.doubts.has_unmeasured_completion else (),
            doubts=[doubt for doubt in doubts if doubt.limit is Confidence.LOW],
        )

    def _build_proposal(
        self,
        goal: Goal,
        criteria: Sequence[Criterion],
        confidence: Confidence,
        choices: Sequence[Choice] = (),
        *,
        rationale: tuple[str, ...],
        warnings: tuple[str, ...] = (),
        unmeasured: tuple[str, ...] = (),
        doubts: Sequence[Doubt] = (),
    ) -> Proposal:
        rejected = (
            RejectedCriterion(f"`{candidate.command}` ({candidate.source})", reason)
            for choice in choices
            for candidate, reason in choice.rejected
        )
        return Proposal(
            goal,
            tuple(
                adapt_to_installed_tools(criterion, self.project, self.find_tool)
                for criterion in assign_distinct_ids(criteria)
            ),
            confidence,
            rationale,
            alternatives=tuple(dict.fromkeys(rejected)),
            warnings=warnings,
            unmeasured=unmeasured,
            doubt=next((doubt.reason for doubt in sorted(doubts, key=lambda doubt: doubt.can_be_settled)), ""),
            can_be_confirmed=all(doubt.can_be_settled for doubt in doubts),
            rewordings=self.advisor.suggest_rewordings() if confidence is Confidence.LOW else (),
            max_iterations=self.task.iteration_limit or self.intent.iteration_cap,
        )

    def _find_purposes(self) -> tuple[tuple[Purpose, ...], tuple[str, ...]]:
        """Return the purposes to verify, with reasons; add those of CI if nothing may break, or the task demands CI."""
        text = " ".join(self.task.request.split())
        words = self.intent.matched_words
        quoted = words if words.lower() in text.lower() else shorten(text, 60)
        reasons = [
            f"`{quoted}` asks for {self.intent.goal.value}"
            if words
            else "no word of the task names a class: what works has to keep working"
        ]
        demand = find_ci_demand(self.project)
        takes_ci = demand or self.intent.goal is Goal.REGRESSION_GATE
        in_ci = (candidate for candidate in self.candidates if candidate.layer is Layer.CI and not candidate.is_trivial)
        added = [candidate.purpose for candidate in in_ci if takes_ci and candidate.purpose in ALL_CHECKS]
        if demand and added:
            reasons.append(f"{demand} says that nothing is done until CI passes")
        return tuple(dict.fromkeys((*self.intent.purposes, *added))) or ALL_CHECKS, tuple(reasons)

    def _choose(self, purposes: Sequence[Purpose]) -> list[Choice]:
        targets = find_whole_suite_targets(self.project)
        choices: list[Choice | None] = []
        for purpose in purposes:
            tools = [tool for tool in self.intent.tools if tool.purpose is purpose]
            choices += (choose_named(tool, self.candidates, self.task.text, targets) for tool in tools)
            if not tools:
                choices.append(choose_candidates(purpose, self.candidates, self.task.text, targets))
        return [choice for choice in choices if choice]

    def _build_criteria(self, choices: Sequence[Choice]) -> list[Criterion]:
        return [
            build_criterion(candidate, self.project, self._find_coverage_goal(choice), choice.agreeing_sources)
            for choice in choices
            for candidate in choice.chosen
        ]

    def _find_coverage_goal(self, choice: Choice) -> CoverageGoal:
        """Return the coverage that the task demands, or else the settings (not for a part), or else any increase."""
        part = find_part(self.task.request, self.project)
        configured = None if part else read_coverage_threshold(self.project, choice.chosen[0].folder)
        return CoverageGoal(self.intent.threshold or configured, part)

    def _list_additions(self, choices: Sequence[Choice]) -> Iterator[Criterion]:
        """Yield criteria without a command: tests for new code exist, and a completion that nothing measures."""
        if self.intent.goal is Goal.IMPLEMENT_FEATURE:
            yield from filter(None, map(self.doubts.build_tests_criterion, choices))
        if self.doubts.has_unmeasured_completion:
            yield Criterion("a.task.completion", self.task.completion, check=self.task.completion)

    def _list_reasons(self, choices: Sequence[Choice]) -> Iterator[str]:
        tests = self.project.find_tests()
        for choice in choices:
            for candidate in choice.chosen:
                place = f"{candidate.source} ({candidate.layer.value})"
                if candidate.layer is Layer.TASK:
                    place = "the task names the tool"
                elif candidate.is_guess:
                    place = f"a guess from {candidate.source.path}"
                elif candidate.source.path in tests:
                    place = f"there are tests ({candidate.source.path})"
                yield f"{candidate.purpose.value}: {place}"
            for other in choice.agreeing:
                yield f"{other.source} says the same ({other.layer.value})"
            for other in choice.opposing:
                trusted = choice.chosen[0].source.path
                yield f"{other.source} differs: `{other.command}` ({other.layer.value}); {trusted} is believed"
            if any(candidate.is_trivial for candidate in choice.chosen):
                yield TRIVIAL_REASON


def _classify_task_command(command: str, intent: Intent) -> Purpose:
    """Return the purpose of a command of the task: COVERAGE if a threshold applies to it, TEST if it is unknown."""
    if intent.threshold and "--cov" in command:
        return Purpose.COVERAGE
    return classify_command(command) or Purpose.TEST
