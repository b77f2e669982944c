"""Questions to the user during a run: continue, is it done, and what to do in an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pytest_loop.core.events.run_payloads import ReviewDone
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Opinion
from pytest_loop.core.workload.analysis import OPTION_COUNT
from pytest_loop.core.workload.hypotheses import Decision, OnPlateau, OnRegression
from pytest_loop.inference.clarity import Shape
from pytest_loop.inference.gates import (
    Confirm,
    Gate,
    GateDecision,
    decide_gate,
    render_iteration_question,
    render_success_question,
)
from pytest_loop.inference.task_phrases import parse_task

Ask = Callable[[str], str]
Answer = TypeVar("Answer")
YES_BY_DEFAULT = ("", "y", "yes")
_REGRESSIONS = {"a": OnRegression.ACCEPT, "d": OnRegression.DIFFERENT, "s": OnRegression.STOP}
_PLATEAUS = {"c": OnPlateau.CONTINUE, "s": OnPlateau.STOP}


@dataclass(frozen=True)
class Gates:
    """Decides when the user is asked; `read_answer` returns None at the end of input."""

    confirm: Confirm = Confirm.SHAPE
    is_agreed: bool = False
    is_terminal: bool = False
    read_answer: Callable[[str], str | None] = lambda _question: None

    def allow_iteration(self, state: RunState) -> bool | None:
        """Return whether another iteration begins; None if the input ended.

        The user is asked after an agent has worked, unless a review has just rejected the result.
        """
        has_worked = state.iteration > 1 or bool(state.plan)
        if not has_worked or state.is_rejected or not self._must_ask(Gate.ITERATION, state):
            return True
        unmet = len(state.evaluation.unmet) if state.evaluation else 0
        question = render_iteration_question(state.iteration, state.max_iterations, unmet)
        answer = self.read_answer(f"{question} [Y/n] ")
        return None if answer is None else answer.lower() in YES_BY_DEFAULT

    def review(self, state: RunState) -> ReviewDone | None:
        """Return the user's opinion of a result that passes; None without a question, or if there is one already."""
        if state.signals.review is not None or not self._must_ask(Gate.SUCCESS, state):
            return None
        total = state.evaluation.total if state.evaluation else 0
        answer = self.read_answer(f"{render_success_question(total)} [Y/n] ")
        if answer is None:
            return ReviewDone(status=Opinion.PENDING)
        if answer.lower() in YES_BY_DEFAULT:
            return ReviewDone(status=Opinion.APPROVE)
        feedback = answer if answer.lower() not in ("n", "no") else self.read_answer("what is missing? ") or ""
        return ReviewDone(status=Opinion.REJECT, feedback=feedback)

    def _must_ask(self, gate: Gate, state: RunState) -> bool:
        decision = decide_gate(
            gate,
            Shape(state.setup.draft.shape),
            self.confirm,
            is_agreed=self.is_agreed,
            is_terminal=self.is_terminal,
            skips_gates=parse_task(state.task.prompt).skips_gates,
        )
        return decision is GateDecision.ASK


def ask_for_option(ask: Ask) -> Decision:
    """Ask which edit of a composer to make; other words than a number are feedback and skip the iteration."""
    answer = ask("which edit? [1 is recommended, 2, 3, s skips, other words go to the composer] ").strip()
    if answer in ("", *(str(number) for number in range(1, OPTION_COUNT + 1))):
        return Decision(chosen=int(answer or 1), reason="chosen by a person")
    if answer.lower() in ("s", "skip"):
        return Decision(chosen=None, reason="skipped by a person")
    return Decision(chosen=None, reason="sent back by a person", feedback=answer)


def ask_about_regression(ask: Ask) -> OnRegression:
    """Ask what to do about cases that became worse."""
    return _ask_for_letter(
        ask, "cases became worse: accept it, try something different, or stop? [a/d/s] ", _REGRESSIONS
    )


def ask_about_plateau(ask: Ask) -> OnPlateau:
    """Ask whether to continue without progress."""
    return _ask_for_letter(ask, "nothing has improved for a while: continue or stop? [c/s] ", _PLATEAUS)


def _ask_for_letter(ask: Ask, question: str, answers: Mapping[str, Answer]) -> Answer:
    """Ask until the answer begins with one of the letters; an empty answer stops."""
    while True:
        letter = ask(question).strip().lower()[:1]
        if not letter or letter in answers:
            return answers[letter or "s"]
