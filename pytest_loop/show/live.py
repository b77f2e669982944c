"""What a person sees while a run is at work: a log of lines, and at a terminal a region below it that stands still."""

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
from pytest_loop.show.region import BARS, HEIGHT, Look, Standing, Work, cells, region

PREFIX = "  | "
LONGEST = 500
MOST = 1024 * 1024
_EVERY = 1.0
_ROOM = 8
# Styles are harmless; whatever else controls a terminal would be obeyed among our own lines.
_CONTROL = re.compile(r"(\x1b\[[0-9;:]*m)|\x1b(?:\[[0-?]*[ -/]*[@-~]?|.)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")


@dataclass(frozen=True)
class Tone:
    """How much is said, and how it may look; `verbosity` is pytest's: below 0 for `-q`, above for `-v`."""

    verbosity: int = 0
    is_coloured: bool = False
    has_region: bool = True


def tone(environment: Mapping[str, str], verbosity: int = 0, colour: str = "auto") -> Tone:
    """What the person and the environment ask for: `NO_COLOR`, `TERM=dumb`, a build server, `--color`, `-q`, `-v`."""
    is_plain = bool(environment.get("NO_COLOR")) or environment.get("PY_COLORS") == "0" or colour == "no"
    is_build = bool(environment.get("CI") or environment.get("BUILD_NUMBER"))
    return Tone(verbosity, not is_plain, environment.get("TERM") != "dumb" and not is_build and verbosity > -2)


class Live:
    """Everything that is shown during a run passes through here, so that nothing is written into the region."""

    def __init__(
        self,
        stream: TextIO,
        tone: Tone | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        size: Callable[[], os.terminal_size] | None = None,
    ) -> None:
        self.tone = tone or Tone()
        self.clock = clock
        self._stream = stream
        self._size = size or (lambda: os.get_terminal_size(stream.fileno()))
        self._has_region = stream.isatty() and self.tone.has_region
        self._standing = Standing()
        self._at_work: list[Worker] = []
        self._began = self._stepped = clock()
        self._shown = 0.0
        self._drawn: list[int] = []
        self._session = _Lines()
        self._lock = RLock()

    @contextmanager
    def work(self, name: str) -> Iterator[Worker]:
        """While somebody works; two may do so at the same time."""
        worker = Worker(name, self)
        with self._lock:
            self._at_work.append(worker)
        self.mention(f"{name} ...")
        try:
            yield worker
        finally:
            worker.end()
            with self._lock:
                self._at_work.remove(worker)
            self.explain(f"{name} took {self.clock() - worker.started:.1f} s")

    def stand(self, state: RunState) -> None:
        """Something has happened in the run."""
        with self._lock:
            if self._standing.hear(state):
                self._stepped = self.clock()
            self._show()

    def tick(self) -> None:
        """Some time has passed; a log needs no reminder of that."""
        with self._lock:
            if self.clock() - self._shown >= _EVERY:
                self._show()

    def write(self, line: str) -> None:
        """A line of its own, or several."""
        with self._lock:
            self._show(f"{line}\n")

    def mention(self, line: str) -> None:
        """A line that `-q` does without: who begins to work, and what agents say meanwhile."""
        if self.tone.verbosity >= 0:
            self.write(line)

    def explain(self, line: str) -> None:
        """A line that `-qq` does without: what sessions say, why a verdict is as it is, and how long work took."""
        if self.tone.verbosity >= -1:
            self.write(line)

    def session(self, data: bytes) -> None:
        """A piece of what a session says: as it comes into a log, in whole lines above the region."""
        if self._has_region:
            with self._lock:
                self._log(self._session.hear(data))
        elif self.tone.verbosity >= -1:
            self._stream.write(data.decode("utf-8", "replace"))
            self._stream.flush()

    def hide(self) -> None:
        """Leave the terminal to somebody else, until there is something to show again."""
        with self._lock:
            self._log(self._session.end())
            self._stream.write(self._erased())
            self._stream.flush()

    def close(self) -> None:
        """The run is over: the region goes, the log stays."""
        self.hide()
        self._has_region = False

    # -- the region

    def _log(self, lines: list[str]) -> None:
        """What a session has said, all at once."""
        if lines:
            self.explain("\n".join(map(_harmless, lines)))

    def _show(self, text: str = "") -> None:
        """Add to the log, and draw the region anew below it: all in one piece, so that nothing flickers."""
        if shown := self._erased() + text + self._drawing():
            self._stream.write(shown)
            self._stream.flush()

    def _drawing(self) -> str:
        size = self._room()
        if size is None:
            return ""
        look = Look(size.columns, self.tone.is_coloured, _can_show(self._stream, BARS))
        worker = self._at_work[0] if self._at_work else None
        now = self.clock()
        work = Work(worker.name, now - worker.started, worker.last) if worker else self._judging(now)
        lines = region(self._standing, work, now - self._began, look)
        self._shown = now
        self._drawn = [cells(_STYLE.sub("", line)) for line in lines]
        return "\n".join(lines)

    def _judging(self, now: float) -> Work:
        """What goes on where no agent works."""
        step = self._standing.state.current_step.value if self._standing.state else ""
        said = _STYLE.sub("", _harmless(self._session.rest or self._session.last))
        return Work(step, now - self._stepped, said)

    def _room(self) -> os.terminal_size | None:
        """How large the terminal is, where it has room for a region and the run has told where it stands."""
        if not self._has_region or self._standing.state is None:
            return None
        try:
            size = self._size()
        except (OSError, ValueError):
            return None
        return size if size.lines >= HEIGHT + _ROOM and size.columns >= 20 else None

    def _erased(self) -> str:
        """What takes the region away; in a terminal that is narrower now, its lines have been broken."""
        if not self._drawn:
            return ""
        size = self._room()
        width = max(1, size.columns if size else max(self._drawn) + 1)
        rows = sum(max(1, -(-wide // width)) for wide in self._drawn)
        self._drawn = []
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"


class _Lines:
    """Whole lines out of pieces, none of them very long."""

    def __init__(self) -> None:
        self._rest = b""
        self.last = ""

    @property
    def rest(self) -> str:
        """What has been heard of a line that has no end yet."""
        return self._rest.decode("utf-8", "replace")

    def hear(self, data: bytes) -> list[str]:
        """The lines that a piece completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [*map(self._told, lines), *(self.end() if len(self._rest) > LONGEST * 4 else [])]

    def end(self) -> list[str]:
        """What is left of a line that has no end."""
        rest, self._rest = self._rest, b""
        return [self._told(rest)] if rest else []

    def _told(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        self.last = text if text.strip() else self.last
        return text


class Worker:
    """One agent at work: what it says is shown in whole lines, none of them very long, and not for ever."""

    def __init__(self, name: str, live: Live) -> None:
        self.name = name
        self.started = live.clock()
        self.last = ""
        self._live = live
        self._lines = _Lines()
        self._left = MOST

    def heard(self, data: bytes) -> None:
        """A piece of what it says."""
        if self._left <= 0:
            return
        piece = data[: self._left]
        self._left -= len(data)
        self._say(self._lines.hear(piece))
        if self._left <= 0:
            self.end()
            self._live.mention(f"{PREFIX}(it says more than {MOST // 1024**2} MB; the rest is not shown)")

    def end(self) -> None:
        """What is left of a line that has no end."""
        self._say(self._lines.end())

    def _say(self, lines: list[str]) -> None:
        texts = [text for line in lines if (text := shorten(line[: LONGEST * 4], LONGEST))]
        if texts:
            self.last = texts[-1]
            self._live.mention("\n".join(PREFIX + text for text in texts))


def _harmless(line: str) -> str:
    """A line as a terminal would leave it, in its own colours."""
    return _CONTROL.sub(lambda found: found[1] or "", line.rstrip("\r").rpartition("\r")[2])


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
