"""From a task and a project to criteria: five layers are asked, and the most trusted answer is proposed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_loop.core.text.lengths import shorten
from pytest_loop.inference import coverage_checks
from pytest_loop.inference.candidate_selection import Choice, choose_candidates
from pytest_loop.inference.command_candidate import Candidate, Confidence, Goal, Layer, Source, find_weakest
from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.inferred_criteria import (
    assign_distinct_ids,
    build_change_criterion,
    build_criterion,
    build_tests_exist,
    find_whole_suite_targets,
)
from pytest_loop.inference.installed_tools import Find, find_installed, mark_missing_tool
from pytest_loop.inference.project_files import Project, is_loop_file
from pytest_loop.inference.proposal import Alternative, Criterion, Proposal
from pytest_loop.inference.sources import find_candidates
from pytest_loop.inference.sources.project_documents import UseCase, find_ci_demand, find_use_cases
from pytest_loop.inference.task_intent import PURPOSES, Intent, Threshold, classify_task, is_measured
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.inference.task_refusal import Refusal, build_refusal, missing, refuse_unverifiable, rewordings
from pytest_loop.inference.tool_purposes import Purpose

_GATED = (Purpose.TEST, Purpose.BUILD, Purpose.LINT, Purpose.TYPES)


def infer_criteria(asked: ParsedTask, project: Project, find: Find = find_installed) -> Proposal | Refusal:
    """Criteria for a task that came without any, from all that the project says; or why there are none."""
    return _Inference(asked, project, find).result()


@dataclass(frozen=True)
class _Inference:
    asked: ParsedTask
    project: Project
    find: Find

    def result(self) -> Proposal | Refusal:
        own = (path for path in self.project.files if not is_loop_file(path))
        aim = classify_task(self.asked.task, self.asked.completion, own)
        if self.asked.commands:
            return self._explicit(aim)
        found = find_candidates(self.project)
        cases = find_use_cases(self.project, self.asked.text)
        if cases:
            return self._by_use_case(cases, aim, found)
        if lacks := missing(self.asked, aim):
            return build_refusal(self.asked, lacks, self.project, found)
        return self._by_class(aim, found)

    def _finished(self, one: Criterion) -> Criterion:
        return mark_missing_tool(one, self.project, self.find)

    # -- the task says it itself

    def _explicit(self, aim: Intent) -> Proposal:
        said = [Candidate(one, _purpose(one, aim), Layer.TASK, _TASK) for one in self.asked.commands]
        criteria = [replace(build_criterion(one, self.project, aim.threshold), sources=()) for one in said]
        meant = next(goal for goal, purposes in PURPOSES.items() if said[0].purpose in purposes)
        return Proposal(
            meant if aim.is_ambiguous else aim.goal,
            tuple(self._finished(one) for one in assign_distinct_ids(criteria)),
            Confidence.HIGH,
            rationale=(f"the task names {_listed(self.asked.commands)}: nothing had to be inferred",),
            max_iterations=self.asked.iteration_limit or aim.iteration_cap,
        )

    # -- a use case says it

    def _by_use_case(self, cases: Sequence[UseCase], aim: Intent, found: Sequence[Candidate]) -> Proposal:
        stated = [
            Criterion(f"a.{case.id.lower()}.{number}", text, check=text, sources=(source,))
            for case in cases
            for number, (text, source) in enumerate(case.criteria, 1)
        ]
        used = self._choices((Purpose.TEST,), found)
        tests = [self._scoped(one, cases) for choice in used for one in self._criteria(choice, aim)]
        is_solid = any(choice.confidence is not Confidence.LOW for choice in used)
        return Proposal(
            aim.goal if aim.matched_words else Goal.IMPLEMENT_FEATURE,
            tuple(self._finished(one) for one in assign_distinct_ids([*stated, *tests])),
            Confidence.HIGH if is_solid else Confidence.LOW,
            rewordings=() if is_solid else rewordings(self.asked, aim, self.project, found),
            rationale=(
                *(f"{case.source} has the acceptance criteria of {case.id}" for case in cases),
                *(reason for choice in used for reason in self._reasons(choice)),
                *(() if used else ("nothing in the project says how its tests are run",)),
            ),
            alternatives=_alternatives(used),
            warnings=self.project.problems,
            max_iterations=self.asked.iteration_limit or aim.iteration_cap,
        )

    def _scoped(self, one: Criterion, cases: Sequence[UseCase]) -> Criterion:
        """The project's own tests, those of the use cases where their files have such names."""
        files = self.project.find_python_tests()
        paths = tuple(path for path in files if any(_mentions(path, case.id) for case in cases))
        if not one.is_project_tests or not paths:
            return one
        command = f"pytest {' '.join(paths)}"
        text = f"the tests of {', '.join(case.id for case in cases)} pass (`{command}`)"
        return replace(one, description=text, command=command, check={"tests": list(paths)}, targets=paths)

    # -- the class of the task, with the commands of the project

    def _by_class(self, aim: Intent, found: Sequence[Candidate]) -> Proposal | Refusal:
        purposes, because = self._purposes(aim, found)
        used = self._choices(purposes, found)
        if aim.goal is Goal.REGRESSION_GATE:
            used = [choice for choice in used if not choice.is_guess] or used
        criteria = [one for choice in used for one in self._criteria(choice, aim)]
        if not criteria and not self.project.is_versioned:
            return refuse_unverifiable(self.asked, aim, self.project, found)
        if not criteria:
            because = (*because, "nothing in the project verifies this: only a change can be seen")
            criteria = [build_change_criterion()]
        doubts = list(self._doubts(aim, used))
        confidence = find_weakest((*(choice.confidence for choice in used), *(limit for limit, _ in doubts)))
        is_sure = confidence is not Confidence.LOW
        return Proposal(
            aim.goal,
            tuple(self._finished(one) for one in assign_distinct_ids([*criteria, *self._more(aim, used)])),
            confidence,
            rewordings=() if is_sure else rewordings(self.asked, aim, self.project, found),
            rationale=(*because, *(reason for choice in used for reason in self._reasons(choice))),
            alternatives=_alternatives(used),
            warnings=(*self.project.problems, *(text for _, text in doubts if text)),
            unmeasured=(self.asked.completion,) if self._is_unmeasured() else (),
            max_iterations=self.asked.iteration_limit or aim.iteration_cap,
        )

    def _choices(self, purposes: Sequence[Purpose], found: Sequence[Candidate]) -> list[Choice]:
        """What to verify each purpose with."""
        whole = find_whole_suite_targets(self.project)
        return [choice for purpose in purposes if (choice := choose_candidates(purpose, found, self.asked.text, whole))]

    def _doubts(self, aim: Intent, used: Sequence[Choice]) -> Iterator[tuple[Confidence, str]]:
        """What makes it less sure than its commands are, and what to tell about that."""
        if aim.is_ambiguous:
            yield Confidence.MEDIUM, ""
        if self._is_unmeasured():
            yield Confidence.LOW, ""
        known = [choice.chosen[0].purpose for choice in used]
        lost = [purpose.value for purpose in aim.purposes if purpose not in known]
        if lost and used and aim.goal is not Goal.REGRESSION_GATE:
            yield Confidence.LOW, f"nothing in the project verifies this: {', '.join(lost)}"
        for choice in used:
            purpose = choice.chosen[0].purpose
            if purpose is Purpose.COVERAGE and self._threshold(aim, choice) is coverage_checks.DEFAULT_THRESHOLD:
                yield Confidence.LOW, f"no share is named: {coverage_checks.DEFAULT_THRESHOLD.value:g} % is a guess"
            if purpose is Purpose.DOCS and _DOCUMENT.search(self.asked.task):
                yield Confidence.LOW, f"`{choice.chosen[0].command}` says nothing about documents"
            if purpose is Purpose.TEST and self._tests_to_write(choice):
                limit = Confidence.MEDIUM if aim.goal is Goal.IMPLEMENT_FEATURE else Confidence.LOW
                yield limit, "there are no tests yet: whoever does this has to write them"

    def _more(self, aim: Intent, used: Sequence[Choice]) -> Iterator[Criterion]:
        """What else has to be true: new code has tests, and a condition of the person's own holds."""
        if aim.goal is Goal.IMPLEMENT_FEATURE:
            yield from (exists for choice in used if (exists := self._tests_to_write(choice)))
        if self._is_unmeasured():
            yield Criterion("a.task.completion", self.asked.completion, check=self.asked.completion)

    def _tests_to_write(self, choice: Choice) -> Criterion | None:
        """That there are tests, where there are none yet."""
        one = choice.chosen[0]
        return build_tests_exist(one.family, (one.source,)) if not self.project.find_tests() else None

    def _is_unmeasured(self) -> bool:
        """Whether the person names a condition that no command here decides."""
        return bool(self.asked.completion) and not is_measured(self.asked.completion)

    def _purposes(self, aim: Intent, found: Sequence[Candidate]) -> tuple[tuple[Purpose, ...], tuple[str, ...]]:
        """What has to be verified, and why: a gate takes in all that CI verifies, and so does who demands CI."""
        text = " ".join(self.asked.text.split())
        said = aim.matched_words if aim.matched_words.lower() in text.lower() else shorten(text, 60)
        because = [f"`{said}` asks for {aim.goal.value}" if aim.matched_words else _AMBIGUOUS]
        in_ci = dict.fromkeys(one.purpose for one in found if one.layer is Layer.CI and not one.is_trivial)
        demand = find_ci_demand(self.project)
        more = [one for one in in_ci if one in _GATED] if demand or aim.goal is Goal.REGRESSION_GATE else []
        if demand and more:
            because.append(f"{demand} says that nothing is done until CI passes")
        return tuple(dict.fromkeys((*aim.purposes, *more))), tuple(because)

    def _criteria(self, choice: Choice, aim: Intent) -> Iterator[Criterion]:
        for one in choice.chosen:
            also = [other.source for other in choice.agreeing]
            yield build_criterion(one, self.project, self._threshold(aim, choice), also)

    def _threshold(self, aim: Intent, choice: Choice) -> Threshold:
        """The share to be covered: what the task says, or the project, or what is usual."""
        return (
            aim.threshold
            or coverage_checks.read_configured_threshold(self.project, choice.chosen[0].folder)
            or coverage_checks.DEFAULT_THRESHOLD
        )

    def _reasons(self, choice: Choice) -> Iterator[str]:
        tests = self.project.find_tests()
        for one in choice.chosen:
            if one.is_guess:
                place = f"a guess from {one.source.path}"
            elif one.source.path in tests:
                place = f"there are tests ({one.source.path})"
            else:
                place = f"{one.source} ({one.layer.value})"
            yield f"{one.purpose.value}: {place}"
        for one in choice.agreeing:
            yield f"{one.source} says the same ({one.layer.value})"
        for one in choice.opposing:
            believed = choice.chosen[0].source.path
            yield f"{one.source} differs: `{one.command}` ({one.layer.value}); {believed} is believed"
        if any(one.is_trivial for one in choice.chosen):
            yield "it comes out the same whatever the code does"


_TASK = Source("the task")
_DOCUMENT = re.compile(r"\breadme\b|\.md\b|\b(?:guide|tutorial|changelog|manual)\b", re.IGNORECASE)
_AMBIGUOUS = "no word of the task names a class: what works has to keep working"


def _purpose(command: str, aim: Intent) -> Purpose:
    """What a command of the task is for: one that measures coverage, where a share is named, has to reach it."""
    if aim.threshold and "--cov" in command:
        return Purpose.COVERAGE
    return classify_command(command) or Purpose.TEST


def _mentions(path: str, case: str) -> bool:
    plain = path.lower().replace("-", "").replace("_", "")
    return case.lower().replace("-", "") in plain


def _alternatives(choices: Sequence[Choice]) -> tuple[Alternative, ...]:
    found = (Alternative(f"`{one.command}` ({one.source})", why) for choice in choices for one, why in choice.rejected)
    return tuple(dict.fromkeys(found))


def _listed(commands: Sequence[str]) -> str:
    return " and ".join(f"`{one}`" for one in commands)
