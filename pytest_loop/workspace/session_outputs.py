"""Find outputs: files at sealed paths that every session of a suite writes, so that no verdict depends on them."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from pytest_loop.workspace.file_tree import FileTree, Stamp, compare_trees, read_stamp
from pytest_loop.workspace.new_files import find_new_place
from pytest_loop.workspace.sealed_files import SealedFiles

_SOURCE = ".py"
_CLOCK_STEP = 10_000_000  # nanoseconds: times of files lag behind the clock


class OutputWatch:
    """Find the outputs of the second of two sessions before the first edit; the scan `before` precedes both sessions.

    A file that only the first session wrote is no output: it may be a snapshot that later sessions read.
    """

    def __init__(self, project: SealedFiles, before: FileTree) -> None:
        self._project = project
        self._before = before
        self._stamps = self._read_stamps()

    def find_outputs(self) -> tuple[str, ...]:
        """Return the files that the session wrote; for those in a new folder, the outermost one with a slash."""
        stamps = self._read_stamps()
        written = {path for path, _ in stamps.items() - self._stamps.items()}
        places = (find_new_place(path, self._before) for path in written)
        return tuple(sorted({f"{place}/" if place not in stamps else place for place in places}))

    def _read_stamps(self) -> dict[str, Stamp | None]:
        """Return the stamps of the sealed files that differ from the scan `before`."""
        self._project.accept_current()
        changes = compare_trees(self._before, self._project.current).select(self._project.sealed)
        paths = (path for path in (*changes.added, *changes.modified) if not path.endswith(_SOURCE))
        return {path: read_stamp(os.path.join(self._project.root, path)) for path in paths}  # noqa: PTH118 - many


def is_written(path: str, written: Collection[str]) -> bool:
    """Return whether `written` names a path, or a folder (with a slash at the end) that contains it."""
    return path in written or any(name.endswith("/") and path.startswith(name) for name in written)


def is_written_since(path: Path, start: int) -> bool:
    """Return whether a file was written since a time in nanoseconds, also with the content that it had."""
    try:
        return path.lstat().st_ctime_ns >= start - _CLOCK_STEP
    except OSError:
        return False
