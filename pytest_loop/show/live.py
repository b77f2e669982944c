"""What a person sees while agents work: their words as they come, and at a terminal how long it has been."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TextIO

from pytest_loop.core.text import one_line

PREFIX = "  | "
LONGEST = 500
MOST = 1024 * 1024
_EVERY = 1.0


class Live:
    """Lines with a prefix into a log; at a terminal also a last line that is written again and again."""

    def __init__(self, stream: TextIO, *, width: int = 80, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._stream = stream
        self._width = width
        self._is_terminal = stream.isatty()
        self._at_work: list[Worker] = []
        self._shown = 0.0
        self._is_open = False
        self._lock = RLock()

    @contextmanager
    def work(self, name: str) -> Iterator[Worker]:
        """While somebody works; two may do so at the same time."""
        worker = Worker(name, self)
        with self._lock:
            self._at_work.append(worker)
            self._shown = worker.started
        self.write(f"{name} ...")
        try:
            yield worker
        finally:
            worker.end()
            with self._lock:
                self._at_work.remove(worker)
            self.write(f"{name} took {self.clock() - worker.started:.1f} s")

    def tick(self) -> None:
        """Some time has passed; a log needs no reminder of that."""
        with self._lock:
            now = self.clock()
            if self._at_work and self._is_terminal and now - self._shown >= _EVERY:
                self._shown = now
                self._stream.write("\r\x1b[K" + self._at_work[0].status(now)[: self._width - 1])
                self._stream.flush()
                self._is_open = True

    def write(self, line: str) -> None:
        """A line of its own."""
        with self._lock:
            self._stream.write(("\r\x1b[K" if self._is_open else "") + line + "\n")
            self._stream.flush()
            self._is_open = False


class Worker:
    """One agent at work: what it says is shown in whole lines, none of them very long, and not for ever."""

    def __init__(self, name: str, live: Live) -> None:
        self.name = name
        self.started = live.clock()
        self._live = live
        self._rest = b""
        self._last = ""
        self._left = MOST

    def heard(self, data: bytes) -> None:
        """A piece of what it says."""
        if self._left <= 0:
            return
        *lines, self._rest = (self._rest + data[: self._left]).split(b"\n")
        self._left -= len(data)
        for line in lines:
            self._say(line)
        if len(self._rest) > LONGEST * 4:
            self._say(self._rest)
            self._rest = b""
        if self._left <= 0:
            self.end()
            self._live.write(f"{PREFIX}(it says more than {MOST // 1024**2} MB; the rest is not shown)")

    def end(self) -> None:
        """What is left of a line that has no end."""
        rest, self._rest = self._rest, b""
        self._say(rest)

    def status(self, now: float) -> str:
        """How long it has been, and the last that was heard."""
        return f"{self.name} {now - self.started:.0f} s" + (f": {self._last}" if self._last else "")

    def _say(self, line: bytes) -> None:
        text = one_line(line[: LONGEST * 4].decode("utf-8", "replace"), LONGEST)
        if text:
            self._last = text
            self._live.write(PREFIX + text)
