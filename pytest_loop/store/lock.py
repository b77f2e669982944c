"""Locks that the system releases when their process dies (flock): the only locks of the package."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from pytest_loop.errors import BusyError
from pytest_loop.store import disk
from pytest_loop.store.clock import read_clock

TIMEOUT = 1.0
_POLL_INTERVAL = 0.02


class Owner(Enum):
    """The owner of a lock: a living process, one that died without releasing it, or none."""

    ALIVE = "alive"
    DEAD = "dead"
    NONE = "none"


class Lock:
    """A lock file with a note about its owner, deleted on release.

    A note that is left behind proves nothing: only the flock decides whether the owner is alive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor >= 0

    def acquire(self, timeout: float = TIMEOUT) -> None:
        """Take the lock, or raise `BusyError` after `timeout`; `find_owner` elsewhere may hold it briefly."""
        if not wait_until(self._try_acquire, timeout):
            raise BusyError(f"process {self.read_note().get('pid', 'unknown')} works there")

    def _try_acquire(self) -> bool:
        with disk.translate_errors("lock", self.path):
            descriptor = disk.open_regular_file(self.path, os.O_RDWR | os.O_CREAT)
            try:
                # The previous owner may have deleted the file after it was opened here.
                is_acquired = _try_flock(descriptor, fcntl.LOCK_EX) and disk.is_same_file(self.path, descriptor)
                if is_acquired:
                    _write_note(descriptor, {})
                    self._descriptor = descriptor
                return is_acquired
            finally:
                if not self.is_held:
                    os.close(descriptor)

    def release(self) -> None:
        """Release the lock and delete its file."""
        if self.is_held:
            if disk.is_same_file(self.path, self._descriptor):
                with suppress(OSError):
                    self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = -1

    def renew(self) -> None:
        """Take the lock again if its file was deleted."""
        if self.is_held and not disk.is_same_file(self.path, self._descriptor):
            self.release()
            self.acquire()

    def find_owner(self) -> Owner:
        """Return the lock's owner, or ALIVE if it cannot be determined."""
        if self.is_held:
            return Owner.ALIVE
        try:
            with disk.open_for_reading(self.path) as file:
                return Owner.DEAD if _try_flock(file.fileno(), fcntl.LOCK_SH) else Owner.ALIVE
        except OSError as error:
            return Owner.NONE if error.errno in disk.MISSING_FILE_ERRORS else Owner.ALIVE

    def update_note(self, **fields: int) -> None:
        """Add fields to the note, for the process that finds it after a crash."""
        if self.is_held:
            _write_note(self._descriptor, fields)

    def read_note(self) -> dict[str, object]:
        """Read the owner's note; return an empty one if it cannot be read."""
        try:
            with disk.open_for_reading(self.path) as file:
                note = json.load(file)
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}


@contextmanager
def lock_folder(folder: Path, timeout: float = 10 * TIMEOUT) -> Iterator[None]:
    """Hold a lock on the folder itself, without a lock file."""
    with disk.translate_errors("lock", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not wait_until(lambda: _try_flock(descriptor, fcntl.LOCK_EX), timeout):
            raise BusyError(f"another process has locked {folder} for more than {timeout:g} s: try again")
        yield
    finally:
        os.close(descriptor)


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Return whether a condition becomes true in time."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_INTERVAL)
    return True


def _try_flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_note(descriptor: int, fields: dict[str, int]) -> None:
    note = json.dumps({"pid": os.getpid(), "started_at": read_clock(), **fields}).encode()
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    disk.write_all(descriptor, note + b"\n")
