"""Run jobs in forks, several at once, and leave no process or file behind."""

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
from typing import Any, NoReturn, TypeAlias

from pytest_loop.processes.process_tree import adopt_orphans, find_children
from pytest_loop.repair import sandbox

_TICK = 0.05
_CHUNK = 1 << 16
Send: TypeAlias = Callable[[Mapping[str, object]], None]  # sends one JSON object from a fork to its parent
_PARENT_PIPES: list[int] = []  # at most one: this process's pipe to its parent, closed in its own forks


@dataclass(frozen=True)
class Job:
    """The work of one fork and its limit in seconds; a message with `within` sets a new limit, counted from then on."""

    key: int
    work: Callable[[Send], None]
    seconds: float


@dataclass
class ForkResult:
    """The messages of a fork; `is_finished` if its work returned, `is_late` if it reached the time limit."""

    key: int
    messages: list[dict[str, Any]]
    is_finished: bool
    is_late: bool = False


@dataclass
class _Fork:
    job: Job
    pid: int
    pipe: int
    temp_folder: Path
    deadline: float
    data: bytearray = field(default_factory=bytearray)
    messages: list[dict[str, Any]] = field(default_factory=list)
    is_finished: bool = False
    is_late: bool = False
    is_reaped: bool = False


class ForkPool:
    """Run at most `workers` forks at a time, each in its own process group and temporary folder.

    A fork first calls `enter` with its temporary folder; the default enters the sandbox.
    """

    def __init__(
        self,
        temp_folder: Path,
        workers: int,
        enter: Callable[[Path], None] = sandbox.enter_sandbox,
    ) -> None:
        self._temp_folder = temp_folder
        self._workers = workers
        self._enter = enter
        self._running: dict[int, _Fork] = {}
        self._dying: set[int] = set()
        self._count = 0
        self._earlier_children = find_children()
        adopt_orphans()

    def __enter__(self) -> ForkPool:
        return self

    def __exit__(self, *_: object) -> None:
        for fork in list(self._running.values()):
            self._remove(fork)
        self._kill_orphans()

    @property
    def has_room(self) -> bool:
        """Whether another fork may start: fewer than `workers` run, and no orphans of ended forks are left."""
        if not self._running:
            self._kill_orphans()
        return len(self._running) < self._workers and not self._find_orphans()

    @property
    def is_idle(self) -> bool:
        return not self._running

    def start(self, job: Job) -> None:
        """Start a job in a new fork."""
        self._count += 1
        temp_folder = self._temp_folder / f"t{self._count}"
        temp_folder.mkdir(exist_ok=True)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns about forking with threads; these forks only run tests
            pid = os.fork()
        if pid == 0:
            self._run_job(job, temp_folder, writing)
        os.close(writing)
        with suppress(OSError):
            os.setpgid(pid, pid)
        os.set_blocking(reading, False)
        self._running[reading] = _Fork(job, pid, reading, temp_folder, time.monotonic() + job.seconds)

    def _run_job(self, job: Job, temp_folder: Path, writing: int) -> NoReturn:
        """In the fork: run the job and exit."""
        exit_code = 1
        try:
            os.setpgid(0, 0)
            for descriptor in (*self._running, *_PARENT_PIPES):
                with suppress(OSError):  # the project may have closed the pipe
                    os.close(descriptor)
            _PARENT_PIPES[:] = [writing]
            self._enter(temp_folder)

            def send(message: Mapping[str, object] | None) -> None:
                data = memoryview(json.dumps(message).encode() + b"\n")
                while data:
                    data = data[os.write(writing, data) :]

            job.work(send)
            send(None)
            exit_code = 0
        finally:
            os._exit(exit_code)

    def interrupt(self) -> None:
        """Send SIGTERM to all running forks."""
        for fork in self._running.values():
            with suppress(OSError):
                os.kill(fork.pid, signal.SIGTERM)

    def collect_results(self) -> Iterator[ForkResult]:
        """Wait a moment for messages, then yield the results of forks that have ended or are late."""
        if self._running:
            ready, _, _ = select.select(list(self._running), [], [], _TICK)
            for pipe in ready:
                self._read_messages(self._running[pipe])
        now = time.monotonic()
        for fork in list(self._running.values()):
            fork.is_late = not fork.is_finished and now >= fork.deadline
            fork.is_reaped = _try_reap(fork.pid)
            if fork.is_finished or fork.is_late or fork.is_reaped:
                self._read_messages(fork)
                self._remove(fork)
                yield ForkResult(fork.job.key, fork.messages, fork.is_finished, fork.is_late)

    def _read_messages(self, fork: _Fork) -> None:
        with suppress(BlockingIOError):
            while data := os.read(fork.pipe, _CHUNK):
                fork.data += data
        *lines, rest = fork.data.split(b"\n")
        fork.data = bytearray(rest)
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):  # code under test may write to any open descriptor
                continue
            if message is None:
                fork.is_finished = True
            elif isinstance(message, dict):
                fork.messages.append(message)
                if "within" in message:
                    fork.deadline = time.monotonic() + message["within"]

    def _remove(self, fork: _Fork) -> None:
        """Kill a fork with its process group, and delete its temporary folder."""
        with suppress(OSError):
            os.killpg(fork.pid, signal.SIGKILL)
        if not fork.is_reaped:
            with suppress(OSError):
                os.kill(fork.pid, signal.SIGKILL)
            self._dying.add(fork.pid)
        os.close(fork.pipe)
        del self._running[fork.pipe]
        try:
            fork.temp_folder.rmdir()
        except OSError:
            shutil.rmtree(fork.temp_folder, ignore_errors=True)

    def _find_orphans(self) -> set[int]:
        """Return the ids of processes that ended forks left behind."""
        self._dying = {pid for pid in self._dying if not _try_reap(pid)}
        running = {fork.pid for fork in self._running.values()}
        return find_children() - self._earlier_children - running - self._dying

    def _kill_orphans(self) -> None:
        while pids := self._find_orphans() | self._dying:
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(OSError):
                    os.waitpid(pid, 0)


def _try_reap(pid: int) -> bool:
    """Reap a process if it has ended; return whether it has."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
