"""One document: its text, its hash, and a copy that an agent may write into."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_loop.errors import StateError

MAX_SIZE = 8 * 1024 * 1024


class Artifact:
    """The document that a run improves."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_text(self) -> str | None:
        """The text; None where there is no file yet."""
        try:
            if not self.path.exists():
                return None
            if not self.path.is_file():
                raise StateError(f"expected a file for the artifact, found something else: {self.path}")
            if self.path.stat().st_size > MAX_SIZE:
                raise StateError(f"expected at most {MAX_SIZE // 1024**2} MB for the artifact, found more: {self.path}")
            return self.path.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise StateError(f"cannot read the artifact {self.path}: {error.strerror or error}") from None

    def compute_hash(self) -> str:
        """SHA-256 of the file as it is; empty where there is none."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except OSError:
            return ""

    @contextmanager
    def make_scratch_copy(self) -> Iterator[Path]:
        """A copy with the same name for an agent to write into: a crash in the middle leaves the artifact whole."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            copy = Path(folder) / self.path.name
            if self.path.is_file():
                copy.write_bytes(self.path.read_bytes())
            yield copy
