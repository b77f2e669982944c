"""One owner at a time: a lock that ends with its process, and a note that says whose it is."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from pytest_loop.errors import BusyError
from pytest_loop.store import disk
from pytest_loop.store.clock import read_clock

PATIENCE = 1.0
_POLL = 0.02


class Owner(Enum):
    """Who holds a lock: a process that lives, one that died with it, or nobody."""

    ALIVE = "alive"
    DEAD = "dead"
    NONE = "nobody"


class Lock:
    """A file that is locked while somebody owns it, and gone when it was given back.

    The system releases the lock of a process that dies: a note left behind is never believed, whoever has its pid now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    @property
    def is_held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor >= 0

    def acquire(self, patience: float = PATIENCE) -> None:
        """Become the owner; somebody who only looks whether it is free has it for a moment, so that we wait one."""
        until = time.monotonic() + patience
        while not self._tried():
            if time.monotonic() >= until:
                raise BusyError(f"process {self.read_note().get('pid', 'unknown')} works there")
            time.sleep(_POLL)

    def _tried(self) -> bool:
        with disk.translate_errors("lock", self.path):
            descriptor = disk.open_regular_file(self.path, os.O_RDWR | os.O_CREAT)
            try:
                is_ours = _locked(descriptor, fcntl.LOCK_EX) and self._is_here(descriptor)
                if is_ours:
                    _write_note(descriptor, {})
                    self._descriptor = descriptor
                return is_ours
            finally:
                if not self.is_held:
                    os.close(descriptor)

    def _is_here(self, descriptor: int) -> bool:
        """Whether the file still has its name: the owner before us may have taken it away."""
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Give it back, and leave nothing."""
        if self.is_held:
            if self._is_here(self._descriptor):
                with suppress(OSError):
                    self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = -1

    def update_note(self, **fields: int) -> None:
        """Write down more, for whoever finds the note of a dead owner."""
        if self.is_held:
            _write_note(self._descriptor, fields)

    def renew(self) -> None:
        """Take it again where somebody has taken the file away."""
        if self.is_held and not self._is_here(self._descriptor):
            self.release()
            self.acquire()

    def find_owner(self) -> Owner:
        """Who has it; where that cannot be found out, somebody may."""
        if self.is_held:
            return Owner.ALIVE
        try:
            with disk.open_for_reading(self.path) as file:
                return Owner.DEAD if _locked(file.fileno(), fcntl.LOCK_SH) else Owner.ALIVE
        except OSError as error:
            return Owner.NONE if error.errno in disk.MISSING_FILE_ERRORS else Owner.ALIVE

    def read_note(self) -> dict[str, object]:
        """What the owner wrote down."""
        try:
            with disk.open_for_reading(self.path) as file:
                found = json.load(file)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _write_note(descriptor: int, fields: dict[str, int]) -> None:
    os.ftruncate(descriptor, 0)
    note = json.dumps({"pid": os.getpid(), "started_at": read_clock(), **fields}).encode()
    os.lseek(descriptor, 0, os.SEEK_SET)
    disk.write_all(descriptor, note + b"\n")


@contextmanager
def lock_folder(folder: Path, patience: float = 10 * PATIENCE) -> Iterator[None]:
    """Nobody else is in here at the same time; the folder itself is the lock, so that nothing is left behind."""
    until = time.monotonic() + patience
    with disk.translate_errors("lock", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while not _locked(descriptor, fcntl.LOCK_EX):
            if time.monotonic() >= until:
                raise BusyError(f"another process has locked {folder} for more than {patience:g} s: try again")
            time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
