"""The terminal of the user: messages and questions."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TextIO

from pytest_loop.show.live_view import LiveView
from pytest_loop.show.look import Look

YES = ("y", "yes")
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Console:
    """A stream for messages, and standard input for answers."""

    stream: TextIO
    look: Look = field(default_factory=Look)

    @cached_property
    def live(self) -> LiveView:
        """The view through which everything is printed."""
        return LiveView(self.stream, self.look)

    @property
    def can_ask(self) -> bool:
        """Whether a user at a terminal can answer."""
        return bool(sys.stdin and sys.stdin.isatty())

    def print_line(self, line: str) -> None:
        self.live.write(line)

    def print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.print_line(line)

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question; without a terminal the answer is no."""
        answer = self.read_answer(f"{question} [y/N] ") if self.can_ask else None
        return answer is not None and answer.lower() in YES

    def read_answer(self, question: str, is_needed: Callable[[], bool] = lambda: True) -> str | None:
        """Return the line typed after a question; None at the end of input, or if the answer is not needed any more."""
        self.live.hide()
        self.stream.write(self.look.adapt(question))
        self.stream.flush()
        while not select.select([sys.stdin], [], [], _POLL_SECONDS)[0]:
            if not is_needed():
                return None
        line = sys.stdin.readline()
        return line.strip() if line else None
