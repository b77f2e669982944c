"""Print the output of a run: log lines and, on a terminal, one line of progress below them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TextIO

from pytest_loop.core.text.lengths import shorten
from pytest_loop.show.look import Look, cut_to_width, format_clock, measure_width, remove_styles, shorten_agent

PREFIX = "  | "
MAX_LINE = 500
MAX_BYTES = 1024 * 1024
# The verbosities from which the output of sessions and agents is shown as it arrives.
SHOW_SESSIONS = 1
SHOW_AGENTS = 2
_REFRESH_SECONDS = 0.5
# Without a line of progress, work that takes longer is reported, and again after twice the time.
_LONG_SECONDS = 60.0
_MIN_WIDTH = 20
_INDENT = " " * 5
# Styles are harmless; any other control sequence could move the cursor between our own lines.
_CONTROL = re.compile(r"(\x1b\[[0-9;:]*m)|\x1b(?:\[[0-?]*[ -/]*[@-~]?|.)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class LiveView:
    """Print all output of a run, so that nothing is written into the line of progress."""

    def __init__(
        self,
        stream: TextIO,
        look: Look | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        get_size: Callable[[], os.terminal_size] | None = None,
    ) -> None:
        self.look = look or Look()
        self.clock = clock
        self.position = ""
        self._stream = stream
        self._get_size = get_size or (lambda: os.get_terminal_size(stream.fileno()))
        self._workers: list[WorkerOutput] = []
        self._session: SessionProgress | None = None
        self._is_hidden = not self.look.has_progress
        self._drawn_at = 0.0
        self._drawn_width = 0
        self._is_line_open = False
        self._next_report = _LONG_SECONDS
        self._lock = RLock()

    @contextmanager
    def show_work(self, name: str) -> Iterator[WorkerOutput]:
        """Show the output of an agent while it works; two agents may work at once."""
        worker = WorkerOutput(name, self)
        with self._lock:
            self._workers.append(worker)
            self._next_report = _LONG_SECONDS
            self._draw()
        self.write(f"{name} ...", SHOW_AGENTS)
        try:
            yield worker
        finally:
            worker.end()
            with self._lock:
                self._workers.remove(worker)
                self._draw()
            self.write(f"{name} took {self.clock() - worker.started:.1f} s", SHOW_AGENTS)

    @contextmanager
    def show_session(self, name: str, describe: Callable[[], str]) -> Iterator[None]:
        """Show the progress of a session, unless its own output is shown."""
        with self._lock:
            self._session = SessionProgress(name, describe, self.clock())
            self._next_report = _LONG_SECONDS
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                self._session = None
                self._draw()

    def refresh(self) -> None:
        """Draw the line of progress again, at most every half second; without a terminal, report long work instead."""
        with self._lock:
            if self.clock() - self._drawn_at >= _REFRESH_SECONDS:
                self._draw()
                self._report_long_work()

    def _report_long_work(self) -> None:
        work, now = self._workers[0] if self._workers else self._session, self.clock()
        if work is None or self.look.has_progress or self.look.verbosity >= SHOW_AGENTS:
            return
        if now - work.started >= self._next_report and (text := self._describe_work(now)):
            self._next_report *= 2
            self.write(f"{_INDENT}{text}", 0)

    def write(self, lines: str, verbosity: int | None = None) -> None:
        """Print lines, at or above a verbosity if one is given."""
        if verbosity is None or self.look.verbosity >= verbosity:
            with self._lock:
                self._draw(f"{self.look.adapt(lines)}\n")

    def write_session_output(self, data: bytes) -> None:
        """Print output of a session as it arrives, if sessions are shown."""
        if self.look.verbosity < SHOW_SESSIONS or not data:
            return
        with self._lock:
            self._print(self._render_erasure() + data.decode("utf-8", "replace"))
            self._is_line_open = not data.endswith(b"\n")

    def hide(self) -> None:
        """Remove the line of progress until there is something to show again."""
        with self._lock:
            self._print(self._close_open_line() + self._render_erasure())

    def close(self) -> None:
        """Remove the line of progress for good; the log stays."""
        self.hide()
        self._is_hidden = True

    # -- the line of progress

    def _draw(self, text: str = "") -> None:
        """Add text to the log and draw the progress below it in one write, so that nothing flickers."""
        ending = self._close_open_line() if text else ""
        if output := self._render_erasure() + ending + text + self._render_progress():
            self._print(output)

    def _print(self, text: str) -> None:
        """Print a text; after the reader has closed the pipe, as `head` does, print nothing."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def _close_open_line(self) -> str:
        """Return a line break if the output of a session ends inside a line, and consider the line closed."""
        is_open, self._is_line_open = self._is_line_open, False
        return "\n" if is_open else ""

    def _render_progress(self) -> str:
        columns = 0 if self._is_hidden or self._is_line_open else self._measure_columns()
        now = self._drawn_at = self.clock()
        text = self._describe_work(now) if columns >= _MIN_WIDTH else ""
        if not text:
            return ""
        line = cut_to_width(self.look.adapt(f"{self.position:<4} {text}"), columns - 1)
        self._drawn_width = measure_width(line)
        return self.look.paint(line, "dim")

    def _describe_work(self, now: float) -> str:
        if self._workers:
            worker = self._workers[0]
            return self.look.join(shorten_agent(worker.name), format_clock(now - worker.started), worker.last_line)
        if self._session and self.look.verbosity < SHOW_SESSIONS:
            progress, started = self._session.describe(), self._session.started
            return self.look.join(self._session.name, progress, format_clock(now - started))
        return ""

    def _measure_columns(self) -> int:
        """Return the width of the terminal, or 0 if it is unknown."""
        try:
            return self._get_size().columns
        except (OSError, ValueError):
            return 0

    def _render_erasure(self) -> str:
        """Return the codes that erase the drawn progress, including rows that a narrower terminal has wrapped."""
        if not self._drawn_width:
            return ""
        columns = self._measure_columns() or self._drawn_width
        rows = -(-self._drawn_width // columns)
        self._drawn_width = 0
        # `K` erases one row: in the top row, tmux would copy the text that `J` erases into the history of the terminal.
        return f"\r\x1b[{rows - 1}A\x1b[J" if rows > 1 else "\r\x1b[K"


@dataclass(frozen=True)
class SessionProgress:
    """A session that is running: its name, a description of its progress, and its start."""

    name: str
    describe: Callable[[], str]
    started: float


class _LineBuffer:
    """Build complete lines from pieces of output; split very long lines."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[str]:
        """Return the lines that the data completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        texts = [line.decode("utf-8", "replace") for line in lines]
        return [*texts, *(self.end() if len(self._rest) > MAX_LINE * 4 else [])]

    def end(self) -> list[str]:
        """Return the unfinished line; an empty list without one."""
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []


class WorkerOutput:
    """The output of one agent: complete lines of limited length, and a limited amount in total."""

    def __init__(self, name: str, live: LiveView) -> None:
        self.name = name
        self.started = live.clock()
        self.last_line = ""
        self._live = live
        self._lines = _LineBuffer()
        self._remaining = MAX_BYTES

    def write(self, data: bytes) -> None:
        if self._remaining <= 0:
            return
        piece = data[: self._remaining]
        self._remaining -= len(data)
        self._print(self._lines.add(piece))
        if self._remaining <= 0:
            self.end()
            self._live.write(
                f"{PREFIX}(more than {MAX_BYTES // 1024**2} MB of output: the rest is not shown)", SHOW_AGENTS
            )

    def end(self) -> None:
        """Print the unfinished line."""
        self._print(self._lines.end())

    def _print(self, lines: list[str]) -> None:
        texts = [text for line in lines if (text := shorten(_remove_controls(line[: MAX_LINE * 4]), MAX_LINE))]
        if texts:
            self.last_line = texts[-1]
            self._live.write("\n".join(PREFIX + text for text in texts), SHOW_AGENTS)


def _remove_controls(line: str) -> str:
    """Return a line as a terminal would show it, without its colours."""
    return remove_styles(_CONTROL.sub(lambda match: match[1] or "", line.rstrip("\r").rpartition("\r")[2]))
