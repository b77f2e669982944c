"""The end of a file that only grows: appended to and flushed, and saved if somebody takes the file away."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pytest_loop.store import disk


class AppendOnlyFile:
    """One descriptor for the length of a run: what was written stays readable through it, whoever deletes the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._length = 0

    def append(self, data: bytes) -> str:
        """Add bytes and flush them; gives what somebody else did to the file meanwhile, or nothing."""
        trouble = ""
        if self._descriptor >= 0:
            trouble = self._meddled()
        elif self.path.exists():
            self._open()
        else:
            self._begin(data)
            return ""
        whole = b"\n" + data if trouble else data
        with disk.translate_errors("write", self.path):
            try:
                disk.write_all(self._descriptor, whole)
                os.fsync(self._descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._length)
                raise
        self._length += len(whole)
        return trouble

    def _begin(self, data: bytes) -> None:
        """The first bytes come with the file: there is no moment in which it has half of them."""
        disk.write_atomically(self.path, data)
        self._open()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        with disk.translate_errors("write", self.path):
            self._descriptor = disk.open_regular_file(self.path, os.O_RDWR | os.O_APPEND)
            self._length = os.fstat(self._descriptor).st_size

    def _meddled(self) -> str:
        """What became of the file since we wrote last; one that is gone is written again."""
        ours = os.fstat(self._descriptor)
        try:
            is_here = os.path.samestat(self.path.lstat(), ours)
        except OSError:
            is_here = False
        if not is_here:
            self._save()
            return "deleted or replaced"
        is_ours = ours.st_size == self._length
        self._length = ours.st_size
        return "" if is_ours else "changed"

    def _save(self) -> None:
        kept = os.pread(self._descriptor, self._length, 0)
        self.close()
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, kept)
        self._open()
