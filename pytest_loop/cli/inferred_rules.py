"""Infer the rules of a run: ask about doubtful ones, refuse missing tools, measure numbers that must grow."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.task import TaskContext, can_ask, propose_criteria
from pytest_loop.core.text.lengths import shorten
from pytest_loop.errors import CheckError
from pytest_loop.inference.command_candidate import Confidence, Goal
from pytest_loop.inference.coverage_criteria import build_baseline_check, set_baseline
from pytest_loop.inference.doubts import NO_TESTS
from pytest_loop.inference.inferred_criteria import describe_installation
from pytest_loop.inference.project_files import read_project
from pytest_loop.inference.proposal import Criterion, Proposal
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.rules.checks.check import Context
from pytest_loop.rules.checks.command_checks import Metric
from pytest_loop.run.console import Console
from pytest_loop.run.questions import YES_BY_DEFAULT
from pytest_loop.settings.command_line import replace_task
from pytest_loop.settings.settings import Settings

NO_GUARDS = "none"
_NO = ("n", "no")
_ALL_TESTS = "fix until the tests pass"
_COMMAND_ADVICE = "to judge by a command, end the task with: until `COMMAND` passes"
_OTHER_COMMAND_ADVICE = "to judge by another command, end the task with: until `COMMAND` passes"
_WRITE = re.compile(r"\s*(?:please\s+)?(?:write|draft|compose)\b", re.IGNORECASE)
_WRITING_GOALS = (Goal.DOCUMENTED, Goal.IMPLEMENT_FEATURE)


class UncertainCommandError(UnclearError):
    """The task is about the project, but the command that judges it is not certain, or cannot run here."""


class NoTestsError(UncertainCommandError):
    """There are no tests yet, and the agent may write them first."""


def infer_rules(context: TaskContext, settings: Settings, console: Console) -> TaskContext:
    """Add rules that tell when the task is done; raises `UnclearError` if none can be inferred with confidence."""
    return _Inference(settings, console).infer(context)


@dataclass(frozen=True)
class _Inference:
    """Infer rules with the settings and the console of one invocation."""

    settings: Settings
    console: Console

    def infer(self, context: TaskContext) -> TaskContext:
        proposal = propose_criteria(context, self.settings)
        is_doubtful = proposal.confidence is Confidence.LOW
        if is_doubtful and self._may_ask_for_document(context, proposal):
            raise UnclearError(self._explain_missing_measure(context, proposal))
        if proposal.doubt == NO_TESTS and self.settings.start.tests_first:
            raise NoTestsError(NO_TESTS)
        if is_doubtful and self._can_ask and (answer := self._ask(proposal)):
            return self.infer(replace(context, task=replace(context.task, commands=(answer,))))
        # A task that writes something may mean a document, which needs no command.
        error = UnclearError if proposal.goal in _WRITING_GOALS else UncertainCommandError
        if proposal.missing_tool:
            raise error(self._explain_missing_tool(context, proposal))
        if is_doubtful and not self._can_ask:
            raise error(self._explain_doubt(context, proposal))
        if is_doubtful:
            proposal = replace(proposal, confidence=Confidence.HIGH, rationale=("you confirmed it",))
        criteria = tuple(map(self._measure_baseline, proposal.criteria))
        return replace(context, proposal=replace(proposal, criteria=(*criteria, *self._find_guards(proposal))))

    def _may_ask_for_document(self, context: TaskContext, proposal: Proposal) -> bool:
        """Return whether a task may mean a document: it asks to write something in a project without tests."""
        is_writing = proposal.goal in _WRITING_GOALS and _WRITE.match(context.task.task)
        return bool(is_writing) and not read_project(self.settings.root).find_tests()

    def _explain_missing_measure(self, context: TaskContext, proposal: Proposal) -> str:
        problem = f"nothing in the project says when this is done: {shorten(context.task.request)}"
        return problem if self._can_ask else f"{problem}{_offer_tests(proposal)}\n  {_COMMAND_ADVICE}"

    def _find_guards(self, proposal: Proposal) -> Iterator[Criterion]:
        """Yield the command that runs the project's tests as a guard, where pytest does not collect them."""
        if self.settings.workspace.guards == NO_GUARDS:
            return
        tests = infer_criteria(parse_task(_ALL_TESTS), read_project(self.settings.root))
        if not isinstance(tests, Proposal) or tests.confidence is Confidence.LOW:
            return
        goals = {criterion.command for criterion in proposal.criteria}
        for criterion in tests.criteria[:1]:
            is_command = not (criterion.is_project_tests or criterion.missing_tool)
            if is_command and criterion.command not in goals:
                yield replace(criterion, id="a.guard.tests", is_guard=True)

    @property
    def _can_ask(self) -> bool:
        return can_ask(self.settings, self.console)

    def _ask(self, proposal: Proposal) -> str:
        """Ask the user about a doubtful proposal; return the command that they name, empty if they confirm it."""
        self.console.print_line(f"doubt       {proposal.doubt}")
        question = f"Judge by `{proposal.verification_command}`? [Y/n/other] "
        if not proposal.can_be_confirmed:
            otherwise = "the agent writes failing tests first" if proposal.doubt == NO_TESTS else "none"
            question = f"Which command passes when it is done? [{otherwise}] "
        answer = self.console.read_answer(question)
        if answer == "" and proposal.doubt == NO_TESTS:
            raise NoTestsError(NO_TESTS)
        is_declined = not answer and not proposal.can_be_confirmed
        if answer is None or is_declined or answer.lower() in _NO:
            if answer and proposal.goal in _WRITING_GOALS:
                raise UnclearError("No command of the project judges this: say what it is, and when it is done.")
            raise KeyboardInterrupt
        is_confirmed = proposal.can_be_confirmed and answer.lower() in YES_BY_DEFAULT
        return "" if is_confirmed else answer.strip("` ")

    def _explain_doubt(self, context: TaskContext, proposal: Proposal) -> str:
        """Explain a doubt in three lines, with the command to type."""
        line = shlex.join(["pytest", *replace_task(self.settings.arguments, proposal.rewordings[0])])
        if proposal.can_be_confirmed:
            problem = f"it is not certain that `{proposal.verification_command}` judges this: {proposal.doubt}"
            return _explain(context, problem, f"to judge by it: {line}") + _offer_tests(proposal)
        problem = f"nothing judges this: {proposal.doubt}"
        if proposal.doubt == NO_TESTS:
            line = shlex.join(["pytest", *self.settings.arguments, "--loop-tests-first"])
            return _explain(context, problem, f"to let it write failing tests first, which you confirm: {line}")
        return _explain(context, problem, f"for example: {line}") + _offer_tests(proposal)

    def _explain_missing_tool(self, context: TaskContext, proposal: Proposal) -> str:
        tool = proposal.missing_tool
        problem = f"this is judged by `{proposal.verification_command}`, and {tool} is not installed"
        return _explain(context, problem, f"install it: {describe_installation(tool)}")

    def _measure_baseline(self, criterion: Criterion) -> Criterion:
        """Add the baseline number, which is 0 without tests, to a criterion that needs one; return others unchanged."""
        if not criterion.needs_baseline:
            return criterion
        root = self.settings.root
        if not read_project(root).find_tests():
            return set_baseline(criterion, 0.0)
        self.console.print_line(f"measuring with `{criterion.command}` before the first edit ...")
        try:
            number = Metric.model_validate(build_baseline_check(criterion)).measure(Context(root, root))
        except (ValueError, CheckError) as error:
            raise UncertainCommandError(_explain_missing_baseline(criterion, error)) from None
        return set_baseline(criterion, number)


def _offer_tests(proposal: Proposal) -> str:
    """Return the line that offers tests for something new, which tests of the project cannot measure yet."""
    advice = "\n  to let the agent write failing tests first, which you confirm: --loop-tests-first"
    return advice if proposal.goal is Goal.IMPLEMENT_FEATURE else ""


def _explain_missing_baseline(criterion: Criterion, error: Exception) -> str:
    return (
        f"the coverage before the run cannot be measured: {error} (`{criterion.command}`)\n"
        "  run the command yourself to see why, and start again\n"
        f"  {_OTHER_COMMAND_ADVICE}"
    )


def _explain(context: TaskContext, problem: str, advice: str) -> str:
    return f"{problem} ({shorten(context.task.request)})\n  {advice}\n  {_OTHER_COMMAND_ADVICE}"
