"""Which files may be edited: Python code inside the folder that the patterns allow, and nothing that tests it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

EVERYTHING = ("*.py",)
_TESTS = ("conftest.py", "test_*.py", "*_test.py", "tests.py", "test.py")
_TEST_FOLDERS = frozenset(("tests", "test", "testing"))
_FOREIGN_FOLDERS = frozenset(("site-packages", "node_modules", "__pycache__"))


class Scope:
    """Asked for every file that runs, so it remembers its answers."""

    def __init__(self, folder: Path, patterns: Sequence[str] = EVERYTHING, tests: Iterable[Path] = ()) -> None:
        self.folder = folder.resolve()
        self._spec = GitIgnoreSpec.from_lines(patterns or EVERYTHING, backend="simple")
        self._tests = {path.resolve() for path in tests}
        self._known: dict[str, Path | None] = {}

    def file(self, name: str) -> Path | None:
        """The file that a piece of code says it comes from, where it may be edited."""
        try:
            return self._known[name]
        except KeyError:
            found = self._known[name] = self._look(name)
            return found

    def _look(self, name: str) -> Path | None:
        if name.startswith("<") or not name.endswith(".py"):
            return None
        path = Path(name).resolve()
        if path in self._tests or not path.is_relative_to(self.folder) or not path.is_file():
            return None
        inside = PurePosixPath(path.relative_to(self.folder).as_posix())
        return path if is_code(inside) and self._spec.match_file(str(inside)) else None


def is_code(path: PurePosixPath) -> bool:
    """Whether a path inside a project is code under test: no test, no configuration of tests, nothing installed."""
    if any(fnmatch.fnmatchcase(path.name, pattern) for pattern in _TESTS):
        return False
    folders = path.parts[:-1]
    return not any(one in _TEST_FOLDERS or one in _FOREIGN_FOLDERS or one.startswith(".") for one in folders)
