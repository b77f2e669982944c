"""Questions on the way: whether to go on after an iteration, and whether what passes is done."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TextIO, TypeVar

from pytest_loop.core.events.run_payloads import ReviewDone
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Opinion
from pytest_loop.core.workload.analysis import OPTIONS
from pytest_loop.core.workload.hypotheses import Decision, OnPlateau, OnRegression
from pytest_loop.inference.clarity import (
    Confirm,
    Gate,
    GateDecision,
    Shape,
    decide_gate,
    render_iteration_question,
    render_success_question,
)
from pytest_loop.inference.task_phrases import parse_task

YES = ("", "y", "yes")
_PATIENCE = 0.5


@dataclass(frozen=True)
class Gates:
    """When a person is asked, and how; without a terminal nobody is. `listen` gives a line, or None where it ended."""

    confirm: Confirm = Confirm.SHAPE
    is_agreed: bool = False
    is_terminal: bool = False
    listen: Callable[[str], str | None] = lambda _question: None

    def lets_go_on(self, state: RunState) -> bool | None:
        """Whether another iteration begins; None where nobody answered.

        It is asked where an agent has done something, unless somebody has just said what is missing.
        """
        has_worked = state.iteration > 1 or bool(state.plan)
        if not has_worked or state.is_rejected or not self._asks(Gate.ITERATION, state):
            return True
        left = len(state.evaluation.unmet) if state.evaluation else 0
        answer = self.listen(f"{render_iteration_question(state.iteration, state.max_iterations, left)} [Y/n] ")
        return None if answer is None else answer.lower() in YES

    def review(self, state: RunState) -> ReviewDone | None:
        """What a person says of work that passes; nothing where nobody is asked, or somebody has said it already."""
        if state.signals.review is not None or not self._asks(Gate.SUCCESS, state):
            return None
        total = state.evaluation.total if state.evaluation else 0
        answer = self.listen(f"{render_success_question(total)} [Y/n] ")
        if answer is None:
            return ReviewDone(status=Opinion.PENDING)
        if answer.lower() in YES:
            return ReviewDone(status=Opinion.APPROVE)
        words = answer if answer.lower() not in ("n", "no") else self.listen("what is missing? ") or ""
        return ReviewDone(status=Opinion.REJECT, feedback=words)

    def _asks(self, gate: Gate, state: RunState) -> bool:
        found = decide_gate(
            gate,
            Shape(state.setup.draft.shape),
            self.confirm,
            is_agreed=self.is_agreed,
            is_terminal=self.is_terminal,
            skips_gates=parse_task(state.task.prompt).skips_gates,
        )
        return found is GateDecision.ASK


def is_at_terminal() -> bool:
    """Whether somebody is there who can answer."""
    return bool(sys.stdin and sys.stdin.isatty())


def line(question: str, stream: TextIO, wanted: Callable[[], bool] = lambda: True) -> str | None:
    """What a person types after a question; None where they end the input, or nobody wants to know any more."""
    stream.write(question)
    stream.flush()
    while not select.select([sys.stdin], [], [], _PATIENCE)[0]:
        if not wanted():
            return None
    said = sys.stdin.readline()
    return said.strip() if said else None


Ask = Callable[[str], str]
Answer = TypeVar("Answer")
_REGRESSIONS = {"a": OnRegression.ACCEPT, "d": OnRegression.DIFFERENT, "s": OnRegression.STOP}
_PLATEAUS = {"c": OnPlateau.CONTINUE, "s": OnPlateau.STOP}


def asked_decision(ask: Ask) -> Decision:
    """Which option is taken; other words than a number go to the composer, and the iteration is skipped."""
    said = ask("which edit? [1 is recommended, 2, 3, s skips, other words go to the composer] ").strip()
    if said in ("", *(str(number) for number in range(1, OPTIONS + 1))):
        return Decision(chosen=int(said or 1), reason="chosen by a person")
    if said.lower() in ("s", "skip"):
        return Decision(chosen=None, reason="skipped by a person")
    return Decision(chosen=None, reason="sent back by a person", feedback=said)


def asked_about_regression(ask: Ask) -> OnRegression:
    """Whether what was gained is worth the loss."""
    return _one(ask, "cases became worse: accept it, try something different, or stop? [a/d/s] ", _REGRESSIONS)


def asked_about_plateau(ask: Ask) -> OnPlateau:
    """Whether to try on although nothing improves."""
    return _one(ask, "nothing has improved for a while: continue or stop? [c/s] ", _PLATEAUS)


def _one(ask: Ask, question: str, answers: Mapping[str, Answer]) -> Answer:
    """Asked until it is answered; who has left wants to stop."""
    while True:
        said = ask(question).strip().lower()
        if said[:1] in answers:
            return answers[said[:1]]
        if not said:
            return answers["s"]
