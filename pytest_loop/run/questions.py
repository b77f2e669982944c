"""Ask the user during a run: whether to continue, whether it is done, and what to do in an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pytest_loop.core.events.run_payloads import ReviewDone
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import ReviewStatus, Step
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names
from pytest_loop.core.workload.analysis import OPTION_COUNT
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.core.workload.hypotheses import OnPlateau, OnRegression, OptionDecision
from pytest_loop.core.workload.measurement import Change, Measurement
from pytest_loop.inference.clarity import Shape
from pytest_loop.inference.gates import (
    Confirm,
    Gate,
    GateDecision,
    decide_gate,
    render_baseline_question,
    render_iteration_question,
    render_success_question,
)
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.run.console import YES

Ask = Callable[[str], str]
Answer = TypeVar("Answer")
YES_BY_DEFAULT = ("", "y", "yes")
_MAX_CASES = 8
_REGRESSION_ANSWERS = {"a": OnRegression.ACCEPT, "d": OnRegression.DIFFERENT, "s": OnRegression.STOP}
_PLATEAU_ANSWERS = {"c": OnPlateau.CONTINUE, "s": OnPlateau.STOP}


@dataclass(frozen=True)
class Gates:
    """Ask the user at the gates (see `inference.gates`) that `confirm` requires; `is_agreed` is a yes to all of them.

    `read_answer` returns None at the end of input.
    """

    confirm: Confirm = Confirm.SHAPE
    is_agreed: bool = False
    is_terminal: bool = False
    read_answer: Callable[[str], str | None] = lambda _question: None

    def allow_iteration(self, state: RunState) -> bool | None:
        """Return whether another iteration begins; None if the input ended.

        The user is asked after an agent has worked, unless a review or an answer has just said what to do.
        """
        if isinstance(state, ExperimentState) and state.experiment.is_at_baseline:
            return self._confirm_baseline(state)
        has_instruction = state.is_rejected or state.is_answered
        if not state.has_agent_worked or has_instruction or not self._must_ask(Gate.ITERATION, state):
            return True
        unmet = len(state.evaluation.unmet) if state.evaluation else 0
        question = render_iteration_question(state.iteration, state.max_iterations, unmet)
        answer = self.read_answer(f"{question} [Y/n] ")
        return None if answer is None else answer.lower() in YES_BY_DEFAULT

    def _confirm_baseline(self, state: ExperimentState) -> bool | None:
        """Return True to compose the first edit, or None to pause; do not ask again after a composer failed."""
        if state.get_error(Step.CRITIQUE) or not self._must_ask(Gate.BASELINE, state):
            return True
        answer = self.read_answer(f"{render_baseline_question(str(state.experiment.last))} [Y/n, n pauses] ")
        return True if answer is not None and answer.lower() in YES_BY_DEFAULT else None

    def confirm_tests(self, state: RunState) -> bool | None:
        """Return whether tests that an agent wrote for the task are confirmed; None if the input ended.

        A run that was started without questions confirms them; otherwise, they are not confirmed without a user.
        """
        is_agreed = self.is_agreed or state.setup.draft.is_unread
        decision = self._decide(Gate.DRAFT, state, is_agreed=is_agreed)
        if decision is not GateDecision.ASK:
            return decision is GateDecision.PASS
        answer = self.read_answer("judge the work by these tests? [y/N] ")
        return None if answer is None else answer.lower() in YES

    def review(self, state: RunState) -> ReviewDone | None:
        """Return the user's review of a result that passes; None if a review exists already, or none is required."""
        if state.signals.review is not None or not self._must_ask(Gate.SUCCESS, state):
            return None
        total = state.evaluation.total if state.evaluation else 0
        answer = self.read_answer(f"{render_success_question(total)} [Y/n] ")
        if answer is None:
            return ReviewDone(status=ReviewStatus.PENDING)
        if answer.lower() in YES_BY_DEFAULT:
            return ReviewDone(status=ReviewStatus.APPROVE)
        feedback = answer if answer.lower() not in ("n", "no") else self.read_answer("what is missing? ") or ""
        return ReviewDone(status=ReviewStatus.REJECT, feedback=feedback)

    def _must_ask(self, gate: Gate, state: RunState) -> bool:
        return self._decide(gate, state, is_agreed=self.is_agreed) is GateDecision.ASK

    def _decide(self, gate: Gate, state: RunState, *, is_agreed: bool) -> GateDecision:
        return decide_gate(
            gate,
            Shape(state.setup.draft.shape),
            self.confirm,
            is_agreed=is_agreed,
            is_terminal=self.is_terminal,
            skips_gates=parse_task(state.task.prompt).skips_gates,
        )


def ask_for_option(ask: Ask) -> OptionDecision:
    """Ask which edit of a composer to make; any text but a number skips the iteration and is feedback."""
    answer = ask("which edit? [1 is recommended, 2, 3, s skips, other words go to the composer] ").strip()
    if answer in ("", *(str(number) for number in range(1, OPTION_COUNT + 1))):
        return OptionDecision(chosen=int(answer or 1), reason="chosen by a person")
    if answer.lower() in ("s", "skip"):
        return OptionDecision(chosen=None, reason="skipped by a person")
    return OptionDecision(chosen=None, reason="sent back by a person", feedback=answer)


def ask_about_regression(ask: Ask, change: Change, cause: str) -> OnRegression:
    """Name the cases that became worse after the edit `cause`, and ask what to do."""
    after = f" after {shorten(cause, 80)}" if cause else ""
    fixed = f"; {list_names(change.fixed, _MAX_CASES)} improved" if change.fixed else "; no case improved"
    message = f"REGRESSION{after}: {', '.join(change.regressions)} passed before{fixed}"
    question = "accept it, try something different, or stop? [a/d/s, Enter stops] "
    return _ask_for_letter(ask, f"{message}\n{question}", _REGRESSION_ANSWERS)


def ask_about_plateau(ask: Ask, count: int, best: Measurement) -> OnPlateau:
    """Ask whether to continue after `count` measurements that were no better than the best one."""
    message = f"PLATEAU: {count} times no better than {best} of iteration {best.iteration}"
    question = "continue with a different approach, or stop? [c/s, Enter stops] "
    return _ask_for_letter(ask, f"{message}\n{question}", _PLATEAU_ANSWERS)


def _ask_for_letter(ask: Ask, question: str, answers: Mapping[str, Answer]) -> Answer:
    """Ask until the answer begins with one of the letters; an empty answer stops."""
    while True:
        letter = ask(question).strip().lower()[:1]
        if not letter or letter in answers:
            return answers[letter or "s"]
