"""Runs one command: no terminal, deadlines, bounded output, and nothing of it left behind.

What leaves its process group is found by a mark in its environment, where the system shows that (Linux). A process
that leaves the group *and* starts with an empty environment is not found.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, Protocol

from pytest_loop.errors import LoopError

KEPT = 4 * 1024 * 1024
GRACE = 2.0
POLL = 0.05
_MOMENT = 0.02
_PIECE = 1 << 16
MARK = "PYTEST_LOOP_CALL"


class CannotStartError(LoopError):
    """The command could not even be started."""


class Ending(Enum):
    """How a command came to its end."""

    ITSELF = "by itself"
    DEADLINE = "at its deadline"
    SILENCE = "after a long silence"
    REQUEST = "because somebody asked for it"


@dataclass(frozen=True)
class Completed:
    """How a command ended, and the head and tail of what it said; `lost` bytes of its standard output are missing."""

    exit_code: int
    stdout: str
    stderr: str
    ending: Ending
    lost: int = 0

    @property
    def output(self) -> str:
        return "\n".join(part for part in (self.stdout, self.stderr) if part)


@dataclass(frozen=True)
class Order:
    """What to run: a list of words without a shell, a string with one. `wanted` is asked while it runs.

    `limit` is how much of each stream is kept. `thorough` looks for what left the process group, which costs a look at
    every process of the machine; without it that happens only where somebody still holds the command's pipes.
    """

    command: Sequence[str] | str
    cwd: Path
    timeout: float
    silence: float | None = None
    env: Mapping[str, str] | None = None
    stdin: bytes = b""
    limit: int = KEPT
    pass_fds: tuple[int, ...] = ()
    heard: Callable[[bytes], None] | None = None
    wanted: Callable[[], bool] | None = None
    thorough: bool = False


class Patience:
    """How long somebody may work, and how long say nothing; whether it is still wanted is asked now and then."""

    def __init__(self, timeout: float, silence: float | None = None, wanted: Callable[[], bool] | None = None) -> None:
        self._wanted = wanted
        self._silence = silence
        self._deadline = time.monotonic() + timeout
        self._spoke = self._asked = time.monotonic()

    def heard(self) -> None:
        """It spoke: the silence begins anew."""
        self._spoke = time.monotonic()

    def over(self) -> Ending | None:
        """Why it has to end now, if it has to."""
        now = time.monotonic()
        if now >= self._deadline:
            return Ending.DEADLINE
        if self._silence is not None and now - self._spoke >= self._silence:
            return Ending.SILENCE
        if self._wanted is not None and now - self._asked >= POLL:
            self._asked = now
            return None if self._wanted() else Ending.REQUEST
        return None


class Wires:
    """Bytes to and from a process, in both directions at once, so that neither side waits for the other."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._unsent = memoryview(b"")
        self._sent: Callable[[], None] | None = None

    def __enter__(self) -> Wires:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing more to say and nothing more to hear."""
        return not self._selector.get_map()

    @property
    def is_hearing(self) -> bool:
        """Whether somebody at the other end can still say something."""
        return any(key.data is not None for key in self._selector.get_map().values())

    def hear(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, take)

    def send(self, descriptor: int, data: bytes, sent: Callable[[], None] | None = None) -> None:
        """`sent` is called when all is sent, or when nobody reads it any more."""
        os.set_blocking(descriptor, False)
        self._unsent, self._sent = memoryview(data), sent
        self._selector.register(descriptor, selectors.EVENT_WRITE, None)

    def serve(self, wait: float) -> bool:
        """Pass on what is there; wait for it no longer than that. Says whether there was anything."""
        ready = self._selector.select(wait)
        for key, _ in ready:
            going_on = self._tell(key.fd) if key.data is None else _take(key.fd, key.data)
            if not going_on:
                self._selector.unregister(key.fd)
                if key.data is None and self._sent is not None:
                    self._sent()
        return bool(ready)

    def _tell(self, descriptor: int) -> bool:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:_PIECE]) :]
        except BrokenPipeError:
            return False
        return len(self._unsent) > 0


def _take(descriptor: int, take: Callable[[bytes], None]) -> bool:
    data = os.read(descriptor, _PIECE)
    if data:
        take(data)
    return bool(data)


class _Bounded:
    """Keeps the first and the last half of `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.half = limit // 2
        self.head = bytearray()
        self.tail = bytearray()
        self.lost = 0

    def add(self, data: bytes) -> None:
        room = self.half - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > 2 * self.half:
            self.trim()

    def trim(self) -> None:
        extra = max(0, len(self.tail) - self.half)
        self.lost += extra
        del self.tail[:extra]

    def text(self) -> str:
        self.trim()
        gap = f"\n[... {self.lost:,} bytes left out ...]\n".encode() if self.lost else b""
        return (bytes(self.head) + gap + bytes(self.tail)).decode("utf-8", "replace")


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


Start = Callable[[Order, str], Child]


class _Running:
    """A command while it runs."""

    def __init__(self, process: Child, order: Order, mark: str) -> None:
        self.process = process
        self.order = order
        self.mark = mark
        self.patience = Patience(order.timeout, order.silence, order.wanted)
        self.kept = (_Bounded(order.limit), _Bounded(order.limit))

    def collect(self) -> Ending:
        """Hear what the process says until it has ended, and end whatever it leaves behind."""
        with Wires() as wires:
            self._connect(wires)
            ending = self._listen(wires, self.patience.over)
            if ending is not None:
                _signal(self.process.pid, signal.SIGTERM)
                self._listen(wires, Patience(GRACE).over)
            _kill_group(self.process)
            self._clear(wires)
        return ending or Ending.ITSELF

    def completed(self, ending: Ending) -> Completed:
        stdout, stderr = (kept.text() for kept in self.kept)
        return Completed(self.process.wait(), stdout, stderr, ending, self.kept[0].lost)

    def _connect(self, wires: Wires) -> None:
        for stream, kept in zip((self.process.stdout, self.process.stderr), self.kept, strict=True):
            wires.hear(stream.fileno(), self._taker(kept))  # type: ignore[union-attr]
        if self.process.stdin is not None:
            wires.send(self.process.stdin.fileno(), self.order.stdin, self.process.stdin.close)

    def _taker(self, kept: _Bounded) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            self.patience.heard()
            kept.add(data)
            if self.order.heard is not None:
                self.order.heard(data)

        return take

    def _listen(self, wires: Wires, over: Callable[[], Ending | None]) -> Ending | None:
        """Until the command has ended (None), or there is a reason to end it."""
        while self.process.poll() is None:
            if wires.is_idle:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(POLL)
            else:
                wires.serve(POLL)
            if ending := over():
                return ending
        return None

    def _clear(self, wires: Wires) -> None:
        """Hear the last words; who left the group is ended where that was asked for, or where it holds our pipes."""
        if self.order.thorough and not getattr(self.process, "leaves_nothing", False):
            end_stragglers(self.mark)
        for wait in (4 * POLL, GRACE):
            patience = Patience(wait)
            while wires.is_hearing and not patience.over():
                wires.serve(POLL)
            if wires.is_hearing:
                end_stragglers(self.mark)


def run(order: Order, start: Start | None = None) -> Completed:
    """Run a command to its end, whatever that takes; `start` is another way to start it."""
    mark = uuid.uuid4().hex
    process = (start or started)(order, mark)
    with process:
        running = _Running(process, order, mark)
        try:
            return running.completed(running.collect())
        except BaseException:
            end(process)
            end_stragglers(mark)
            raise


def started(order: Order, mark: str) -> Child:
    """A new process, with a mark that `end_stragglers` will find."""
    try:
        return subprocess.Popen(
            order.command,
            shell=isinstance(order.command, str),  # only for a person who wrote `shell: true`
            cwd=order.cwd,
            env=marked(os.environ if order.env is None else order.env, mark),
            stdin=subprocess.PIPE if order.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=order.pass_fds,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CannotStartError(_cannot_start(order, error)) from None


def _cannot_start(order: Order, error: OSError | ValueError) -> str:
    word = order.command if isinstance(order.command, str) else order.command[0]
    if not order.cwd.is_dir():
        return f"cannot run {word!r}: the folder {order.cwd} does not exist"
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return missing(word, order.cwd, order.env) or f"cannot run {word!r}: the program of its first line is missing"
    return f"cannot run {word!r}: {getattr(error, 'strerror', None) or error}"


def missing(word: str, folder: Path, env: Mapping[str, str] | None = None) -> str | None:
    """Why a program cannot be run from a folder, as far as that can be seen without running it."""
    if os.sep not in word:
        known = shutil.which(word, path=None if env is None else env.get("PATH"))
        return None if known else f"cannot run {word!r}: no such command is installed here"
    path = folder / word
    if not path.is_file():
        return f"cannot run {word!r}: there is no such file"
    return None if os.access(path, os.X_OK) else f"cannot run {word!r}: Permission denied (make it executable)"


def end(process: Child) -> None:
    """End the whole group: politely where the command itself still runs, at once where only its children do."""
    try:
        if process.poll() is None:
            _signal(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    finally:  # also when a person interrupts the waiting
        _kill_group(process)


def _kill_group(process: Child) -> None:
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def marked(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """An environment whose processes `end_stragglers` will find; marks add up, for children of children."""
    return {**env, MARK: f"{env[MARK]}:{mark}" if env.get(MARK) else mark}


def mark_of(folder: Path) -> str:
    """A mark that one folder of this machine has, today and tomorrow."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]


@contextlib.contextmanager
def marking(mark: str) -> Iterator[None]:
    """All that is started meanwhile carries the mark, and is ended with it."""
    before = os.environ.get(MARK)
    os.environ.update(marked(os.environ, mark))
    try:
        yield
    finally:
        del os.environ[MARK]
        os.environ.update({} if before is None else {MARK: before})
        end_stragglers(mark)


def end_stragglers(mark: str) -> int:
    """End the processes that carry `mark`, and those that they start meanwhile; gives how many there were.

    Who is just becoming another program shows no environment for a moment: nobody is left when two looks find nobody.
    """
    ended: set[int] = set()
    calm = 0
    while calm < 2:
        found = {pid for pid in _marked_processes(mark) if _ended(pid)} - ended
        ended |= found
        calm = 0 if found else calm + 1
        time.sleep(_MOMENT)
    return len(ended)


def _marked_processes(mark: str) -> list[int]:
    """Where the system does not show environments, nobody is found."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for variable in (folder / "environ").read_bytes().split(b"\0"):
                name, _, value = variable.partition(b"=")
                if name == MARK.encode() and mark.encode() in value.split(b":"):
                    found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def _ended(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True
