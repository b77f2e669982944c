"""The document that a run improves."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_loop.errors import StateError

MAX_SIZE = 8 * 1024 * 1024


class Artifact:
    """One document: its text, its hash, and a copy that an agent may write into."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_text(self) -> str | None:
        """Return the text, or None if the file does not exist yet."""
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
        """Return the SHA-256 of the file, or an empty string if it cannot be read."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except OSError:
            return ""

    @contextmanager
    def make_scratch_copy(self) -> Iterator[Path]:
        """Copy the document under the same name for an agent to edit, so that a crash leaves the original intact."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            copy = Path(folder) / self.path.name
            if self.path.is_file():
                copy.write_bytes(self.path.read_bytes())
            yield copy
