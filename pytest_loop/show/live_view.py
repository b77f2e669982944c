"""The output of a run: log lines, and on a terminal a fixed region below them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TextIO

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.show.live_region import (
    BARS,
    HEIGHT,
    CurrentWork,
    RunProgress,
    TerminalLook,
    measure_width,
    render_region,
)

PREFIX = "  | "
MAX_LINE = 500
MAX_BYTES = 1024 * 1024
_REFRESH_SECONDS = 1.0
_MIN_LOG_HEIGHT = 8
_MIN_WIDTH = 20
# Styles are harmless; any other control sequence could move the cursor between our own lines.
_CONTROL = re.compile(r"(\x1b\[[0-9;:]*m)|\x1b(?:\[[0-?]*[ -/]*[@-~]?|.)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")


@dataclass(frozen=True)
class OutputStyle:
    """How much is printed and how it looks; `verbosity` is pytest's: below 0 for `-q`, above for `-v`."""

    verbosity: int = 0
    is_coloured: bool = False
    has_region: bool = True


def choose_style(environment: Mapping[str, str], verbosity: int = 0, colour: str = "auto") -> OutputStyle:
    """Choose the style by `NO_COLOR`, `TERM=dumb`, a build server, `--color`, `-q` and `-v`."""
    is_plain = bool(environment.get("NO_COLOR")) or environment.get("PY_COLORS") == "0" or colour == "no"
    is_build = bool(environment.get("CI") or environment.get("BUILD_NUMBER"))
    has_region = environment.get("TERM") != "dumb" and not is_build and verbosity > -2
    return OutputStyle(verbosity, not is_plain, has_region)


class LiveView:
    """Print all output during a run, so that nothing is written into the live region."""

    def __init__(
        self,
        stream: TextIO,
        style: OutputStyle | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        get_size: Callable[[], os.terminal_size] | None = None,
    ) -> None:
        self.style = style or OutputStyle()
        self.clock = clock
        self._stream = stream
        self._get_size = get_size or (lambda: os.get_terminal_size(stream.fileno()))
        self._has_region = stream.isatty() and self.style.has_region
        self._progress = RunProgress()
        self._workers: list[WorkerOutput] = []
        self._started = self._step_started = clock()
        self._drawn_at = 0.0
        self._drawn_widths: list[int] = []
        self._session_lines = _LineBuffer()
        self._lock = RLock()

    @contextmanager
    def show_work(self, name: str) -> Iterator[WorkerOutput]:
        """Show work while it is done; two pieces of work may overlap."""
        worker = WorkerOutput(name, self)
        with self._lock:
            self._workers.append(worker)
        self.mention(f"{name} ...")
        try:
            yield worker
        finally:
            worker.end()
            with self._lock:
                self._workers.remove(worker)
            self.explain(f"{name} took {self.clock() - worker.started:.1f} s")

    def update(self, state: RunState) -> None:
        """Show a new state of the run."""
        with self._lock:
            if self._progress.update(state):
                self._step_started = self.clock()
            self._draw()

    def refresh(self) -> None:
        """Draw the region again if the last time is long ago."""
        with self._lock:
            if self.clock() - self._drawn_at >= _REFRESH_SECONDS:
                self._draw()

    def write(self, lines: str) -> None:
        """Print lines whatever the verbosity."""
        with self._lock:
            self._draw(f"{lines}\n")

    def mention(self, lines: str) -> None:
        """Print lines that `-q` drops: the start of work, and the output of agents."""
        if self.style.verbosity >= 0:
            self.write(lines)

    def explain(self, lines: str) -> None:
        """Print lines that `-qq` drops: output of sessions, reasons of verdicts, durations."""
        if self.style.verbosity >= -1:
            self.write(lines)

    def write_session_output(self, data: bytes) -> None:
        """Print output of a session: at once into a log, in complete lines above the region."""
        if self._has_region:
            with self._lock:
                self._log_session(self._session_lines.add(data))
        elif self.style.verbosity >= -1:
            self._stream.write(data.decode("utf-8", "replace"))
            self._stream.flush()

    def hide(self) -> None:
        """Remove the region until there is something to show again."""
        with self._lock:
            self._log_session(self._session_lines.end())
            self._stream.write(self._render_erasure())
            self._stream.flush()

    def close(self) -> None:
        """Remove the region for good; the log stays."""
        self.hide()
        self._has_region = False

    # -- the region

    def _log_session(self, lines: list[str]) -> None:
        if lines:
            self.explain("\n".join(map(_remove_controls, lines)))

    def _draw(self, text: str = "") -> None:
        """Add text to the log and draw the region below it in one write, so that nothing flickers."""
        if output := self._render_erasure() + text + self._render_region():
            self._stream.write(output)
            self._stream.flush()

    def _render_region(self) -> str:
        size = self._measure_terminal()
        if size is None:
            return ""
        now = self._drawn_at = self.clock()
        look = TerminalLook(size.columns, self.style.is_coloured, _can_encode(self._stream, BARS))
        lines = render_region(self._progress, self._describe_work(now), now - self._started, look)
        self._drawn_widths = [measure_width(_STYLE.sub("", line)) for line in lines]
        return "\n".join(lines)

    def _describe_work(self, now: float) -> CurrentWork:
        if self._workers:
            worker = self._workers[0]
            return CurrentWork(worker.name, now - worker.started, worker.last)
        step = self._progress.state.current_step.value if self._progress.state else ""
        last = _STYLE.sub("", _remove_controls(self._session_lines.last))
        return CurrentWork(step, now - self._step_started, last)

    def _measure_terminal(self) -> os.terminal_size | None:
        """Return the terminal's size, or None if it is too small for a region or nothing is known to show."""
        if not self._has_region or self._progress.state is None:
            return None
        try:
            size = self._get_size()
        except (OSError, ValueError):
            return None
        return size if size.lines >= HEIGHT + _MIN_LOG_HEIGHT and size.columns >= _MIN_WIDTH else None

    def _render_erasure(self) -> str:
        """Return the codes that remove the region; a terminal that became narrower has wrapped its lines."""
        if not self._drawn_widths:
            return ""
        size = self._measure_terminal()
        columns = max(1, size.columns if size else max(self._drawn_widths) + 1)
        rows = sum(max(1, -(-width // columns)) for width in self._drawn_widths)
        self._drawn_widths = []
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"


class _LineBuffer:
    """Builds complete lines from pieces of output; very long lines are split."""

    def __init__(self) -> None:
        self._rest = b""
        self._last = ""

    @property
    def last(self) -> str:
        """The unfinished line, or else the last line with text."""
        return self._rest.decode("utf-8", "replace") or self._last

    def add(self, data: bytes) -> list[str]:
        """Return the lines that the data completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [*map(self._decode, lines), *(self.end() if len(self._rest) > MAX_LINE * 4 else [])]

    def end(self) -> list[str]:
        """Return the unfinished line."""
        rest, self._rest = self._rest, b""
        return [self._decode(rest)] if rest else []

    def _decode(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        self._last = text if text.strip() else self._last
        return text


class WorkerOutput:
    """The output of one agent: complete lines of limited length, and a limited amount in total."""

    def __init__(self, name: str, live: LiveView) -> None:
        self.name = name
        self.started = live.clock()
        self.last = ""
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
            self._live.mention(f"{PREFIX}(it says more than {MAX_BYTES // 1024**2} MB; the rest is not shown)")

    def end(self) -> None:
        """Print the unfinished line."""
        self._print(self._lines.end())

    def _print(self, lines: list[str]) -> None:
        texts = [text for line in lines if (text := shorten(line[: MAX_LINE * 4], MAX_LINE))]
        if texts:
            self.last = texts[-1]
            self._live.mention("\n".join(PREFIX + text for text in texts))


def _remove_controls(line: str) -> str:
    """Return a line as a terminal would show it, with its colours."""
    return _CONTROL.sub(lambda match: match[1] or "", line.rstrip("\r").rpartition("\r")[2])


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
