"""The files that may be edited: Python code inside the folder that matches the patterns and is no test."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

ALL_PYTHON_FILES = ("*.py",)
_TEST_FILES = ("conftest.py", "test_*.py", "*_test.py", "tests.py", "test.py")
_TEST_FOLDERS = frozenset(("tests", "test", "testing"))
_FOREIGN_FOLDERS = frozenset(("site-packages", "node_modules", "__pycache__"))


class EditableFiles:
    """Find editable files by name: those that match `patterns`, or all Python files if there are no patterns.

    Cache the results: the tracer looks up the file of every traced call.
    """

    def __init__(self, folder: Path, patterns: Sequence[str], tests: Iterable[Path]) -> None:
        self.folder = folder.resolve()
        self._spec = GitIgnoreSpec.from_lines(patterns or ALL_PYTHON_FILES, backend="simple")
        self._tests = {path.resolve() for path in tests}
        self._cache: dict[str, Path | None] = {}

    def find_file(self, name: str) -> Path | None:
        """Return the resolved path of a code object's file name, or None if this file may not be edited."""
        try:
            return self._cache[name]
        except KeyError:
            path = self._cache[name] = self._find_file(name)
            return path

    def _find_file(self, name: str) -> Path | None:
        if name.startswith("<") or not name.endswith(".py"):
            return None
        path = Path(name).resolve()
        if path in self._tests or not path.is_relative_to(self.folder) or not path.is_file():
            return None
        relative = PurePosixPath(path.relative_to(self.folder).as_posix())
        return path if is_product_code(relative) and self._spec.match_file(str(relative)) else None


def is_product_code(path: PurePosixPath) -> bool:
    """Return whether a path inside a project is code under test: no test, no test configuration, not installed."""
    if any(fnmatch.fnmatchcase(path.name, pattern) for pattern in _TEST_FILES):
        return False
    excluded = _TEST_FOLDERS | _FOREIGN_FOLDERS
    return not any(folder in excluded or folder.startswith(".") for folder in path.parts[:-1])
