"""Count how often each file changes while an agent works, by looking at the files again and again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_loop.workspace.file_scan import scan_files
from pytest_loop.workspace.sealed_files import SealedFiles

# Two edits within one interval count as one: agents need seconds between edits.
MIN_INTERVAL = 0.5
# In a large project the next look waits: looking takes at most a twentieth of the time.
PAUSE_PER_LOOK = 20
_CHUNK = 8192

Versions = Mapping[str, object]


class Rewrites(NamedTuple):
    """The file that was written most often, and how often."""

    path: str = ""
    times: int = 0


class EditCounter:
    """Count the changes of files between looks, from their first `versions` on.

    `list_versions` returns a value for each path; the value differs once the file has changed.
    """

    def __init__(
        self, versions: Versions, list_versions: Callable[[], Versions], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._list_versions = list_versions
        self._clock = clock
        self._versions = versions
        self._counts: Counter[str] = Counter()
        self._next_look = clock() + MIN_INTERVAL

    def poll(self) -> None:
        """Look at the files if the pause after the last look is over."""
        started = self._clock()
        if started >= self._next_look:
            self.look()
            ended = self._clock()
            self._next_look = ended + max(MIN_INTERVAL, PAUSE_PER_LOOK * (ended - started))

    def look(self) -> None:
        """Count the files that changed since the last look."""
        versions = self._list_versions()
        self._counts.update(path for path, version in versions.items() if self._versions.get(path) != version)
        self._versions = versions

    def find_most_edited(self, root: Path) -> Rewrites:
        """Return the text file that changed most often; tools write files of other kinds each time they run."""
        self.look()
        texts = (Rewrites(path, times) for path, times in self._counts.most_common() if _is_text(root / path))
        return next(texts, Rewrites())


def count_project_edits(project: SealedFiles) -> EditCounter:
    """Return a counter for the files of a project, from its last scan on."""
    tree = project.current

    def list_versions() -> Versions:
        nonlocal tree
        tree = scan_files(project.root, project.scope, tree, tree)
        return tree.entries

    return EditCounter(tree.entries, list_versions)


def count_file_edits(path: Path) -> EditCounter:
    """Return a counter for one file."""

    def list_versions() -> Versions:
        try:
            status = path.stat()
        except OSError:
            return {}
        return {path.name: (status.st_mtime_ns, status.st_size, status.st_ino)}

    return EditCounter(list_versions(), list_versions)


def _is_text(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"\0" not in file.read(_CHUNK)
    except OSError:
        return False
