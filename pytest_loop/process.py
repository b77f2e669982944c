"""Runs one command: no terminal, a deadline, bounded output, and nothing of its group left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_loop.errors import CheckError

KEPT = 8 * 1024 * 1024
GRACE = 2.0
_POLL = 0.05


@dataclass(frozen=True)
class Completed:
    """How a command ended, and the head and tail of what it said."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool

    @property
    def output(self) -> str:
        return "\n".join(part for part in (self.stdout, self.stderr) if part)


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
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > 2 * self.half:
            self._trim()

    def _trim(self) -> None:
        extra = len(self.tail) - self.half
        if extra > 0:
            self.lost += extra
            del self.tail[:extra]

    def text(self) -> str:
        self._trim()
        gap = f"\n[... {self.lost:,} bytes left out ...]\n".encode() if self.lost else b""
        return (bytes(self.head) + gap + bytes(self.tail)).decode("utf-8", "replace")


def run(
    command: Sequence[str] | str, *, cwd: Path, timeout: float, env: Mapping[str, str] | None = None, limit: int = KEPT
) -> Completed:
    """Run `command`: a list of words without a shell, a string with one."""
    shell = isinstance(command, str)
    try:
        process = subprocess.Popen(
            command,
            shell=shell,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CheckError(_cannot_start(command, cwd, error)) from None
    with process:
        try:
            kept, timed_out = _collected(process, time.monotonic() + timeout, limit // 2)
        finally:
            _end(process)
    return Completed(process.returncode, kept[0].text(), kept[1].text(), timed_out)


def _cannot_start(command: Sequence[str] | str, cwd: Path, error: OSError | ValueError) -> str:
    word = command if isinstance(command, str) else command[0]
    if not cwd.is_dir():
        return f"cannot run {word!r}: the folder {cwd} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"cannot run {word!r}: no such command is installed here"
    return f"cannot run {word!r}: {getattr(error, 'strerror', None) or error}"


def _collected(process: subprocess.Popen[bytes], until: float, limit: int) -> tuple[list[_Bounded], bool]:
    """What the process says until it has ended and closed its output; whatever holds the pipes then is ended too."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream]
    kept = [_Bounded(limit) for _ in streams]
    with selectors.DefaultSelector() as selector:
        for stream, buffer in zip(streams, kept, strict=True):
            selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map() and process.poll() is None and time.monotonic() < until:
            _read(selector, min(_POLL, max(0.0, until - time.monotonic())))
        timed_out = False
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            timed_out = True
        _end(process)
        drained = time.monotonic() + GRACE
        while selector.get_map() and time.monotonic() < drained:
            _read(selector, _POLL)
    return kept, timed_out


def _read(selector: selectors.BaseSelector, wait: float) -> None:
    for key, _ in selector.select(wait):
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
        data = os.read(stream.fileno(), 1 << 16)
        if data:
            key.data.add(data)
        else:
            selector.unregister(stream)
            stream.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: politely where the command itself still runs, at once where only its children do."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
