"""Changes of a run in its project so far, for the search for tampering and for reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_loop.core.judging.tampering import ChangedSource
from pytest_loop.core.judging.test_files import is_utf8
from pytest_loop.workspace.file_tree import FileChanges, FileKind
from pytest_loop.workspace.ignored_files import SOURCE_SUFFIXES
from pytest_loop.workspace.new_files import find_new_place
from pytest_loop.workspace.seal import is_test_module
from pytest_loop.workspace.sealed_files import SealedFiles

_PYTHON_SUFFIX = ".py"


@dataclass(frozen=True)
class ProjectChanges:
    """The changes of a project since the run began; `allow` stands for its patterns of editable files."""

    project: SealedFiles

    @property
    def _changes(self) -> FileChanges:
        """The changes since the start; with `allow`, only those that match it."""
        changes = self.project.changes
        return changes.select(self.project.allow) if self.project.allow else changes

    def list_sources(self) -> list[ChangedSource]:
        """Return the source files that were added, modified or deleted; with `allow`, only those that match it."""
        project = self.project
        return [
            ChangedSource(
                path,
                self._read_start_text(path) if path in project.start.entries else None,
                _decode((project.read_current_content(path) if path in project.current.entries else None) or b""),
            )
            for path in self._changes.paths
            if path.endswith(SOURCE_SUFFIXES)
        ]

    def list_outer_links(self) -> Iterator[tuple[str, str]]:
        """Yield the links that were added or modified and lead out of the project, with their targets."""
        changes, root = self.project.changes, self.project.root.resolve()
        for path in (*changes.added, *changes.modified):
            if self.project.current.entries[path].kind is FileKind.LINK:
                target = (root / path).resolve()
                if not target.is_relative_to(root):
                    yield path, str(target)

    def read_start_sources(self, *, is_sealed: bool) -> Iterator[str]:
        """Yield the texts at the start of all sealed Python files, or of all that are not sealed."""
        for path in self.project.start.entries:
            if path.endswith(_PYTHON_SUFFIX) and self.project.sealed.matches(path) is is_sealed:
                yield self._read_start_text(path)

    def _read_start_text(self, path: str) -> str:
        return _decode(self.project.read_start_content(path) or b"")

    def list_new_places(self) -> tuple[str, ...]:
        """Return the new Python files and the outermost new folders: no session that decides collects tests there."""
        paths = (path for path in self.project.changes.added if path.endswith(_PYTHON_SUFFIX) and is_utf8(path))
        return tuple(dict.fromkeys(find_new_place(path, self.project.start) for path in paths))

    def list_new_test_modules(self) -> tuple[str, ...]:
        """Return the new files that pytest would collect by their names."""
        return tuple(path for path in self.project.changes.added if is_test_module(path) and is_utf8(path))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
