"""Runs one command: no terminal, deadlines, bounded output, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, Protocol

from pytest_loop.errors import LoopError
from pytest_loop.processes.pipes import BoundedOutput, Pipes
from pytest_loop.processes.process_marks import add_mark, end_marked_processes, make_marked_environment

OUTPUT_LIMIT = 4 * 1024 * 1024
GRACE_PERIOD = 2.0
POLL_INTERVAL = 0.05


class CannotStartError(LoopError):
    """The command could not even be started."""


class Ending(Enum):
    """How a command came to its end."""

    COMPLETED = "by itself"
    DEADLINE = "at its deadline"
    SILENCE = "after a long silence"
    REQUEST = "because somebody asked for it"


@dataclass(frozen=True)
class CommandResult:
    """How a command ended, and the head and tail of what it said; `lost` bytes of its standard output are missing."""

    exit_code: int
    stdout: str
    stderr: str
    ending: Ending
    lost_bytes: int = 0

    @property
    def output(self) -> str:
        return "\n".join(part for part in (self.stdout, self.stderr) if part)


@dataclass(frozen=True)
class Command:
    """What to run: a list of words without a shell, a string with one. `wanted` is asked while it runs.

    `limit` is how much of each stream is kept. `thorough` looks for what left the process group, which costs a look at
    every process of the machine; without it that happens only where somebody still holds the command's pipes.
    """

    words: Sequence[str] | str
    cwd: Path
    timeout: float
    silence: float | None = None
    env: Mapping[str, str] | None = None
    stdin: bytes = b""
    output_limit: int = OUTPUT_LIMIT
    pass_fds: tuple[int, ...] = ()
    on_output: Callable[[bytes], None] | None = None
    should_continue: Callable[[], bool] | None = None
    is_thorough: bool = False


class Deadline:
    """How long somebody may work, and how long say nothing; whether it is still wanted is asked now and then."""

    def __init__(
        self, timeout: float, silence: float | None = None, should_continue: Callable[[], bool] | None = None
    ) -> None:
        self._wanted = should_continue
        self._silence = silence
        self._deadline = time.monotonic() + timeout
        self._spoke = self._asked = time.monotonic()

    def reset_silence(self) -> None:
        """It spoke: the silence begins anew."""
        self._spoke = time.monotonic()

    def find_ending(self) -> Ending | None:
        """Why it has to end now, if it has to."""
        now = time.monotonic()
        if now >= self._deadline:
            return Ending.DEADLINE
        if self._silence is not None and now - self._spoke >= self._silence:
            return Ending.SILENCE
        if self._wanted is not None and now - self._asked >= POLL_INTERVAL:
            self._asked = now
            return None if self._wanted() else Ending.REQUEST
        return None


class Child(Protocol):
    """A process that was started, such as a `Popen`; `leaves_nothing` where it ends with all that it has started."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *_: Any) -> None: ...


Starter = Callable[[Command, str], Child]


class _Running:
    """A command while it runs."""

    def __init__(self, process: Child, order: Command, mark: str) -> None:
        self.process = process
        self.order = order
        self.mark = mark
        self.patience = Deadline(order.timeout, order.silence, order.should_continue)
        self.kept = (BoundedOutput(order.output_limit), BoundedOutput(order.output_limit))

    def collect(self) -> Ending:
        """Hear what the process says until it has ended, and end whatever it leaves behind."""
        with Pipes() as wires:
            self._connect(wires)
            ending = self._listen(wires, self.patience.find_ending)
            if ending is not None:
                _signal(self.process.pid, signal.SIGTERM)
                self._listen(wires, Deadline(GRACE_PERIOD).find_ending)
            _kill_group(self.process)
            self._clear(wires)
        return ending or Ending.COMPLETED

    def completed(self, ending: Ending) -> CommandResult:
        stdout, stderr = (kept.decode() for kept in self.kept)
        return CommandResult(self.process.wait(), stdout, stderr, ending, self.kept[0].lost_bytes)

    def _connect(self, wires: Pipes) -> None:
        for stream, kept in zip((self.process.stdout, self.process.stderr), self.kept, strict=True):
            wires.read_from(stream.fileno(), self._taker(kept))  # type: ignore[union-attr]
        if self.process.stdin is not None:
            wires.write_to(self.process.stdin.fileno(), self.order.stdin, self.process.stdin.close)

    def _taker(self, kept: BoundedOutput) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            self.patience.reset_silence()
            kept.add(data)
            if self.order.on_output is not None:
                self.order.on_output(data)

        return take

    def _listen(self, wires: Pipes, over: Callable[[], Ending | None]) -> Ending | None:
        """Until the command has ended (None), or there is a reason to end it."""
        while self.process.poll() is None:
            if wires.is_idle:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(POLL_INTERVAL)
            else:
                wires.transfer(POLL_INTERVAL)
            if ending := over():
                return ending
        return None

    def _clear(self, wires: Pipes) -> None:
        """Hear the last words; who left the group is ended where that was asked for, or where it holds our pipes."""
        if self.order.is_thorough and not getattr(self.process, "leaves_nothing", False):
            end_marked_processes(self.mark)
        for wait in (4 * POLL_INTERVAL, GRACE_PERIOD):
            patience = Deadline(wait)
            while wires.is_reading and not patience.find_ending():
                wires.transfer(POLL_INTERVAL)
            if wires.is_reading:
                end_marked_processes(self.mark)


def run_command(order: Command, start: Starter | None = None) -> CommandResult:
    """Run a command to its end, whatever that takes; `start` is another way to start it."""
    mark = uuid.uuid4().hex
    process = (start or start_process)(order, mark)
    with process:
        running = _Running(process, order, mark)
        try:
            return running.completed(running.collect())
        except BaseException:
            end_group(process)
            end_marked_processes(mark)
            raise


class _Started(subprocess.Popen[bytes]):
    """Heard to end at once where the system can tell; while it waits, `Popen` only looks now and then."""

    def wait(self, timeout: float | None = None) -> int:
        if timeout and self.returncode is None and _was_awaited(self.pid, timeout):
            timeout = 0
        return super().wait(timeout)


def _was_awaited(pid: int, timeout: float) -> bool:
    """Wait until a process has ended, no longer than that; False where the system cannot tell."""
    try:
        end = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return False
    try:
        looking = select.poll()
        looking.register(end, select.POLLIN)
        looking.poll(timeout * 1000)
    finally:
        os.close(end)
    return True


def start_process(order: Command, mark: str) -> Child:
    """A new process, with a mark that `end_stragglers` will find."""
    try:
        return _Started(
            order.words,
            shell=isinstance(order.words, str),  # only for a person who wrote `shell: true`
            cwd=order.cwd,
            env=make_marked_environment(mark) if order.env is None else add_mark(order.env, mark),
            stdin=subprocess.PIPE if order.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=order.pass_fds,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CannotStartError(_cannot_start(order, error)) from None


def _cannot_start(order: Command, error: OSError | ValueError) -> str:
    word = order.words if isinstance(order.words, str) else order.words[0]
    if not order.cwd.is_dir():
        return f"cannot run {word!r}: the folder {order.cwd} does not exist"
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return (
            find_program_problem(word, order.cwd, order.env)
            or f"cannot run {word!r}: the program of its first line is missing"
        )
    return f"cannot run {word!r}: {getattr(error, 'strerror', None) or error}"


def find_program_problem(word: str, folder: Path, env: Mapping[str, str] | None = None) -> str | None:
    """Why a program cannot be run from a folder, as far as that can be seen without running it."""
    if os.sep not in word:
        known = shutil.which(word, path=None if env is None else env.get("PATH"))
        return None if known else f"cannot run {word!r}: no such command is installed here"
    path = folder / word
    if not path.is_file():
        return f"cannot run {word!r}: there is no such file"
    return None if os.access(path, os.X_OK) else f"cannot run {word!r}: Permission denied (make it executable)"


def end_group(process: Child) -> None:
    """End the whole group: politely where the command itself still runs, at once where only its children do."""
    try:
        if process.poll() is None:
            _signal(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_PERIOD)
    finally:  # also when a person interrupts the waiting
        _kill_group(process)


def _kill_group(process: Child) -> None:
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
