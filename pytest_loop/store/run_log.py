"""What a run in the background says: a file that only grows, written by its process and read by whoever follows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_loop.store import disk


class RunLog:
    """The words of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        return disk.path_exists(self.path)

    @property
    def length(self) -> int:
        """How much there is."""
        return self.path.stat().st_size if self.exists else 0

    @contextmanager
    def open_for_appending(self) -> Iterator[int]:
        """A descriptor for a process that will add to it."""
        with disk.translate_errors("write", self.path):
            descriptor = disk.open_regular_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read_after(self, place: int) -> bytes:
        """What was said after a place."""
        with disk.translate_errors("read", self.path, "try again"), disk.open_for_reading(self.path) as file:
            file.seek(place)
            return file.read()
