"""Questions on the way: whether to go on after an iteration, and whether what passes is done."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from pytest_loop.core.machine.stop_reasons import is_rejected
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Opinion
from pytest_loop.inference.clarity import Confirm, Gate, Passage, Shape, iteration_question, passage, success_question
from pytest_loop.inference.task_phrases import asked

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
        if not has_worked or is_rejected(state) or not self._asks(Gate.ITERATION, state):
            return True
        left = len(state.evaluation.unmet) if state.evaluation else 0
        answer = self.listen(f"{iteration_question(state.iteration, state.max_iterations, left)} [Y/n] ")
        return None if answer is None else answer.lower() in YES

    def review(self, state: RunState) -> dict[str, Any] | None:
        """What a person says of work that passes; nothing where nobody is asked, or somebody has said it already."""
        if state.review is not None or not self._asks(Gate.SUCCESS, state):
            return None
        total = state.evaluation.total if state.evaluation else 0
        answer = self.listen(f"{success_question(total)} [Y/n] ")
        if answer is None:
            return {"status": Opinion.PENDING.value}
        if answer.lower() in YES:
            return {"status": Opinion.APPROVE.value}
        words = answer if answer.lower() not in ("n", "no") else self.listen("what is missing? ") or ""
        return {"status": Opinion.REJECT.value, "feedback": words}

    def _asks(self, gate: Gate, state: RunState) -> bool:
        found = passage(
            gate,
            Shape(state.manner.shape),
            self.confirm,
            is_agreed=self.is_agreed,
            is_terminal=self.is_terminal,
            skips_gates=asked(state.task.prompt).skips_gates,
        )
        return found is Passage.ASK


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
