"""Work in forks, several at once, of which nothing is left behind."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pytest_loop.repair import cage

_TICK = 0.05
_PIECE = 1 << 16
Say: TypeAlias = Callable[[Mapping[str, object]], None]  # how a fork speaks: one object of JSON at a time
_SPEAKING: list[int] = []  # where this process speaks to the one that forked it, which its own forks may not


@dataclass(frozen=True)
class Job:
    """What a fork does, and the seconds it may take; a message that has `within` says how many it takes from then."""

    key: int
    work: Callable[[Say], None]
    seconds: float


@dataclass
class Ended:
    """All that a fork said, and whether it came to its end by itself."""

    key: int
    messages: list[dict[str, Any]]
    finished: bool
    late: bool = False


@dataclass
class _Fork:
    job: Job
    pid: int
    pipe: int
    home: Path
    deadline: float
    data: bytearray = field(default_factory=bytearray)
    messages: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False
    late: bool = False
    gone: bool = False


class Forks:
    """At most `workers` forks at a time, each in a process group and a temporary folder of its own.

    The first thing a fork does is to `enter` its folder, by default a cage.
    """

    def __init__(
        self, home: Path, workers: int, enter: Callable[[Path], None] = cage.enter, closing: tuple[int, ...] = ()
    ) -> None:
        self._home = home
        self._workers = workers
        self._enter = enter
        self._closing = closing
        self._running: dict[int, _Fork] = {}
        self._dying: set[int] = set()
        self._count = 0
        self._before = cage.children()
        cage.adopt_orphans()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        for one in list(self._running.values()):
            self._end(one)
        self._sweep()

    @property
    def has_room(self) -> bool:
        """Whether another one may be started; not before what others left behind is gone."""
        if not self._running:
            self._sweep()
        return len(self._running) < self._workers and not self._strangers()

    @property
    def is_idle(self) -> bool:
        return not self._running

    def start(self, job: Job) -> None:
        self._count += 1
        home = self._home / f"t{self._count}"
        home.mkdir(exist_ok=True)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 3.12 warns of threads; a fork here runs tests and ends
            pid = os.fork()
        if pid == 0:
            self._run(job, home, writing)
        os.close(writing)
        with suppress(OSError):
            os.setpgid(pid, pid)
        os.set_blocking(reading, False)
        self._running[reading] = _Fork(job, pid, reading, home, time.monotonic() + job.seconds)

    def _run(self, job: Job, home: Path, writing: int) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            for one in (*self._running, *self._closing, *_SPEAKING):
                with suppress(OSError):  # the project may have closed it
                    os.close(one)
            _SPEAKING[:] = [writing]
            self._enter(home)

            def say(message: Mapping[str, object] | None) -> None:
                data = memoryview(json.dumps(message).encode() + b"\n")
                while data:
                    data = data[os.write(writing, data) :]

            job.work(say)
            say(None)
            code = 0
        finally:
            os._exit(code)

    def interrupt(self) -> None:
        """Ask those that run to come to an end."""
        for one in self._running.values():
            with suppress(OSError):
                os.kill(one.pid, signal.SIGTERM)

    def ended(self, wait: float = _TICK) -> Iterator[Ended]:
        """Those that have ended by now; looks once."""
        if self._running:
            ready, _, _ = select.select(list(self._running), [], [], wait)
            for pipe in ready:
                self._hear(self._running[pipe])
        now = time.monotonic()
        for one in list(self._running.values()):
            one.late = not one.finished and now >= one.deadline
            one.gone = _is_gone(one.pid)
            if one.finished or one.late or one.gone:
                self._hear(one)
                self._end(one)
                yield Ended(one.job.key, one.messages, one.finished, one.late)

    def _hear(self, one: _Fork) -> None:
        with suppress(BlockingIOError):
            while data := os.read(one.pipe, _PIECE):
                one.data += data
        *lines, rest = one.data.split(b"\n")
        one.data = bytearray(rest)
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):  # what runs there may write to any descriptor it finds
                continue
            if message is None:
                one.finished = True
            elif isinstance(message, dict):
                one.messages.append(message)
                if "within" in message:
                    one.deadline = time.monotonic() + message["within"]

    def _end(self, one: _Fork) -> None:
        with suppress(OSError):
            os.killpg(one.pid, signal.SIGKILL)
        if not one.gone:
            with suppress(OSError):
                os.kill(one.pid, signal.SIGKILL)
            self._dying.add(one.pid)
        os.close(one.pipe)
        del self._running[one.pipe]
        try:
            one.home.rmdir()
        except OSError:
            shutil.rmtree(one.home, ignore_errors=True)

    def _strangers(self) -> set[int]:
        """Processes that forks have left behind."""
        self._dying = {pid for pid in self._dying if not _is_gone(pid)}
        return cage.children() - self._before - {one.pid for one in self._running.values()} - self._dying

    def _sweep(self) -> None:
        while strangers := self._strangers() | self._dying:
            for pid in strangers:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(OSError):
                    os.waitpid(pid, 0)


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; it is waited for by this."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
