"""Run one command without a terminal: with deadlines, bounded output, and no process left behind."""

from __future__ import annotations

import contextlib
import os
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
from pytest_loop.processes.fence import Fence
from pytest_loop.processes.fenced_process import FencedProcess, open_process
from pytest_loop.processes.pipes import BoundedOutput, Pipes
from pytest_loop.processes.process_marks import add_mark, end_marked_processes, make_marked_environment

OUTPUT_LIMIT = 4 * 1024 * 1024
GRACE_PERIOD = 2.0
POLL_INTERVAL = 0.05


class CannotStartError(LoopError):
    """The command could not be started."""


class Ending(Enum):
    """Why a command ended."""

    COMPLETED = "by itself"
    DEADLINE = "at its deadline"
    SILENCE = "after a long silence"
    REQUEST = "on request"


@dataclass(frozen=True)
class CommandResult:
    """The exit code, ending and output of a command; `lost_bytes` counts what is missing from `stdout`."""

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
    """A command and its limits. A list of words runs without a shell, a string with one.

    `timeout` and `silence` limit the seconds in total and without output, `output_limit` limits the bytes of each
    stream. `should_continue` is polled while the command runs. With `ends_detached`, processes that left the process
    group are ended at once; without it, only if one of them keeps a pipe open. Finding them means reading the
    environment of every process of the machine. A `fence` ends all processes without a search.
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
    ends_detached: bool = False
    fence: Fence | None = None


class Deadline:
    """The limits of work in progress: its seconds in total and without output, and a request to stop."""

    def __init__(
        self, timeout: float, silence: float | None = None, should_continue: Callable[[], bool] | None = None
    ) -> None:
        self._should_continue = should_continue
        self._silence = silence
        self._last_output = self._last_poll = time.monotonic()
        self._end = self._last_output + timeout

    def reset_silence(self) -> None:
        self._last_output = time.monotonic()

    def find_ending(self) -> Ending | None:
        """Return why the work has to end now, or None if it may go on."""
        now = time.monotonic()
        if now >= self._end:
            return Ending.DEADLINE
        if self._silence is not None and now - self._last_output >= self._silence:
            return Ending.SILENCE
        if self._should_continue is not None and now - self._last_poll >= POLL_INTERVAL:
            self._last_poll = now
            return None if self._should_continue() else Ending.REQUEST
        return None


class Child(Protocol):
    """The part of `Popen` that `run_command` needs.

    A child with a true attribute `ends_descendants` leaves no process behind, so none is searched for.
    """

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *_: Any) -> None: ...


Starter = Callable[[Command, str], Child]


class _RunningCommand:
    """A started command until its end."""

    def __init__(self, process: Child, command: Command, mark: str) -> None:
        self.process = process
        self.command = command
        self.mark = mark
        self.deadline = Deadline(command.timeout, command.silence, command.should_continue)
        self.outputs = (BoundedOutput(command.output_limit), BoundedOutput(command.output_limit))

    def wait(self) -> CommandResult:
        """Read the output until the process has ended, and end the processes that it leaves behind."""
        with Pipes() as pipes:
            self._connect(pipes)
            ending = self._transfer(pipes, self.deadline)
            if ending is not None:
                _signal_group(self.process, signal.SIGTERM)
                self._transfer(pipes, Deadline(GRACE_PERIOD))
            _kill_group(self.process)
            self._end_stragglers(pipes)
        stdout, stderr = (output.decode() for output in self.outputs)
        ending = ending or Ending.COMPLETED
        return CommandResult(self.process.wait(), stdout, stderr, ending, self.outputs[0].lost_bytes)

    def _connect(self, pipes: Pipes) -> None:
        for stream, output in zip((self.process.stdout, self.process.stderr), self.outputs, strict=True):
            pipes.read_from(stream.fileno(), self._make_reader(output))  # type: ignore[union-attr]  # a pipe
        if self.process.stdin is not None:
            pipes.write_to(self.process.stdin.fileno(), self.command.stdin, self.process.stdin.close)

    def _make_reader(self, output: BoundedOutput) -> Callable[[bytes], None]:
        def read(data: bytes) -> None:
            self.deadline.reset_silence()
            output.add(data)
            if self.command.on_output is not None:
                self.command.on_output(data)

        return read

    def _transfer(self, pipes: Pipes, deadline: Deadline) -> Ending | None:
        """Transfer data until the process has ended (None) or has to end."""
        while self.process.poll() is None:
            if pipes.is_idle:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(POLL_INTERVAL)
            else:
                pipes.transfer(POLL_INTERVAL)
            if ending := deadline.find_ending():
                return ending
        return None

    def _end_stragglers(self, pipes: Pipes) -> None:
        """Read the rest of the output, and end processes that left the group."""
        if self.command.ends_detached and not getattr(self.process, "ends_descendants", False):
            end_marked_processes(self.mark)
        for seconds in (4 * POLL_INTERVAL, GRACE_PERIOD):
            deadline = Deadline(seconds)
            while pipes.is_reading and not deadline.find_ending():
                pipes.transfer(POLL_INTERVAL)
            if pipes.is_reading:
                end_marked_processes(self.mark)


def start_process(command: Command, mark: str) -> Child:
    """Start a process group with a mark for `end_marked_processes`; a fenced one ends with the calling thread."""
    try:
        if command.fence and not isinstance(command.words, str):
            _check_program(command, command.words[0])
        return open_process(
            command.words,
            command.fence,
            dies_with_parent=True,
            cwd=command.cwd,
            env=make_marked_environment(mark) if command.env is None else add_mark(command.env, mark),
            stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=command.pass_fds,
        )
    except (OSError, ValueError) as error:
        raise CannotStartError(_describe_start_error(command, error)) from None


def _check_program(command: Command, program: str) -> None:
    """Raise `CannotStartError` if a program is missing: the wrapper of a fence would only report its own error."""
    problem = find_program_problem(program, command.cwd, command.env) if command.cwd.is_dir() else None
    if problem:
        raise CannotStartError(problem)


def run_command(command: Command, start: Starter = start_process) -> CommandResult:
    """Run a command to its end; `start` is another way to start it."""
    mark = uuid.uuid4().hex
    process = start(command, mark)
    with process:
        try:
            return _RunningCommand(process, command, mark).wait()
        except BaseException:
            end_group(process)
            end_marked_processes(mark)
            raise


def _describe_start_error(command: Command, error: OSError | ValueError) -> str:
    program = command.words if isinstance(command.words, str) else command.words[0]
    if not command.cwd.is_dir():
        return f"cannot run {program!r}: the folder {command.cwd} does not exist"
    if isinstance(error, (FileNotFoundError, PermissionError)):
        problem = find_program_problem(program, command.cwd, command.env)
        return problem or f"cannot run {program!r}: the program of its first line is missing"
    return f"cannot run {program!r}: {getattr(error, 'strerror', None) or error}"


def find_program_problem(program: str, folder: Path, env: Mapping[str, str] | None = None) -> str | None:
    """Return why a program cannot be run from a folder, without running it; None if nothing is wrong."""
    if os.sep not in program:
        is_installed = shutil.which(program, path=None if env is None else env.get("PATH"))
        return None if is_installed else f"cannot run {program!r}: no such command is installed here"
    path = folder / program
    if not path.is_file():
        return f"cannot run {program!r}: there is no such file"
    return None if os.access(path, os.X_OK) else f"cannot run {program!r}: Permission denied (make it executable)"


def end_group(process: Child) -> None:
    """End a process group: with SIGTERM first if its leader still runs, otherwise with SIGKILL at once."""
    try:
        if process.poll() is None:
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_PERIOD)
    finally:  # also when the wait is interrupted
        _kill_group(process)


def _kill_group(process: Child) -> None:
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if isinstance(process, FencedProcess):
            process.signal_group(number)
        else:
            os.killpg(process.pid, number)
