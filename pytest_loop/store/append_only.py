"""Files that only grow: the history of a run, and the output of a run in the background."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_loop.store import disk


class AppendOnlyFile:
    """A file that stays open during a run, so that it can be restored if another process deletes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._length = 0

    def append(self, data: bytes) -> str:
        """Append bytes and flush them to disk; return what another process did to the file, or an empty string."""
        if self._descriptor < 0:
            if not self.path.exists():  # create it together with its first bytes
                disk.write_atomically(self.path, data)
                self._open()
                return ""
            self._open()
        interference = self._undo_removal()
        # The other process may have written half a line.
        self._write(b"\n" + data if interference else data)
        return interference

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        with disk.translate_errors("write", self.path):
            self._descriptor = disk.open_regular_file(self.path, os.O_RDWR | os.O_APPEND)
            self._length = os.fstat(self._descriptor).st_size

    def _undo_removal(self) -> str:
        """Write the file again if it was deleted or replaced; return what happened to it, or an empty string."""
        if disk.is_same_file(self.path, self._descriptor):
            expected_length, self._length = self._length, os.fstat(self._descriptor).st_size
            return "" if self._length == expected_length else "changed"
        data = os.pread(self._descriptor, self._length, 0)
        self.close()
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, data)
        self._open()
        return "deleted or replaced"

    def _write(self, data: bytes) -> None:
        with disk.translate_errors("write", self.path):
            try:
                disk.write_all(self._descriptor, data)
                os.fsync(self._descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._length)  # leave no half-written line
                raise
        self._length += len(data)


class RunLog:
    """The output of a run in the background, written by its process and read by those that follow it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        return disk.path_exists(self.path)

    @property
    def length(self) -> int:
        return self.path.stat().st_size if self.exists else 0

    @contextmanager
    def open_for_appending(self) -> Iterator[int]:
        """Open a file descriptor that a child process writes its output to."""
        with disk.translate_errors("write", self.path):
            descriptor = disk.open_regular_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read_after(self, position: int) -> bytes:
        with disk.translate_errors("read", self.path, "try again"), disk.open_for_reading(self.path) as file:
            file.seek(position)
            return file.read()
