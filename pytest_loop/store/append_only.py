"""Files that only grow: the history of a run, and the output of a run in the background."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_loop.store import disk


class AppendOnlyFile:
    """A file held open for the length of a run: even if it is deleted, its content can be written again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._length = 0

    def append(self, data: bytes) -> str:
        """Append and flush bytes; return what another process did to the file meanwhile, or an empty string."""
        interference = ""
        if self._descriptor >= 0:
            interference = self._detect_interference()
        elif self.path.exists():
            self._open()
        else:  # create the file together with its first bytes
            disk.write_atomically(self.path, data)
            self._open()
            return ""
        self._write(b"\n" + data if interference else data)
        return interference

    def _write(self, data: bytes) -> None:
        with disk.translate_errors("write", self.path):
            try:
                disk.write_all(self._descriptor, data)
                os.fsync(self._descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._length)
                raise
        self._length += len(data)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        with disk.translate_errors("write", self.path):
            self._descriptor = disk.open_regular_file(self.path, os.O_RDWR | os.O_APPEND)
            self._length = os.fstat(self._descriptor).st_size

    def _detect_interference(self) -> str:
        if not disk.is_same_file(self.path, self._descriptor):
            self._rewrite()
            return "deleted or replaced"
        expected_length, self._length = self._length, os.fstat(self._descriptor).st_size
        return "" if self._length == expected_length else "changed"

    def _rewrite(self) -> None:
        data = os.pread(self._descriptor, self._length, 0)
        self.close()
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, data)
        self._open()


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
        """Open a descriptor for the process that writes."""
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
