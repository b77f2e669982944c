"""A console for tests, whose user types prepared answers."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field

from pytest_loop.run.console import Console

# An answer that is a function does something first; None is the end of the input.
Answer = str | None | Callable[[], str | None]


@dataclass(frozen=True)
class TypingConsole(Console):
    """Record what is shown, and give the answers in order."""

    stream: io.StringIO = field(default_factory=io.StringIO)
    answers: list[Answer] = field(default_factory=list)

    @property
    def can_ask(self) -> bool:
        return True

    def read_answer(self, question: str, is_needed: Callable[[], bool] = lambda: True) -> str | None:
        self.stream.write(question + "\n")
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()
