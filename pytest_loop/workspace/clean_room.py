"""The clean room: an evaluation for which files that are not part of the change are as at the start of the run.

These left-out files are ignored by git or belong to tools. New ones are set aside in the run's folder, changed and
removed ones are replaced by archived contents. Afterwards, everything is put back: from a journal, also after a crash.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.clean_room_journal import ASIDE, Journal, put_back, write_journal
from pytest_loop.workspace.content_archive import ContentArchive
from pytest_loop.workspace.file_scan import TOOL_FOLDERS
from pytest_loop.workspace.file_tree import (
    FileChanges,
    FileEntry,
    FileKind,
    FileTree,
    get_modification_time,
    list_parents,
)
from pytest_loop.workspace.left_out_files import (
    LeftOutFiles,
    LeftOutScanner,
    LeftOutScope,
    compare_left_out,
    is_cache,
)
from pytest_loop.workspace.sealed_files import DISCARDED_FOLDER, SealedFiles

# Bounds of what is archived: more would make the start of a run slow.
MAX_SIZE = 1024 * 1024
MAX_TOTAL = 32 * 1024 * 1024
MAX_FILES = 5_000
MAX_SECONDS = 2.0
LISTING, ARCHIVE = "left-out.json", "left-out.kept"


@dataclass
class RoomReport:
    """The left-out files that changed since the start, without caches, and why unverified ones were not restored."""

    changed: list[str] = field(default_factory=list)
    unverified: dict[str, str] = field(default_factory=dict)


class CleanRoom:
    """Set the left-out files of one project to what they were at the start of a run, for a block.

    The `document` that the run writes stays as it is, even if git ignores it, and so do the `opened` paths, into which
    agents may write.
    """

    def __init__(self, project: SealedFiles, folder: Path, opened: Iterable[str] = (), *, document: str = ""):
        self._project = project
        self._folder = folder
        self._root = os.fspath(project.root)
        self._archive = ContentArchive(folder / ARCHIVE)
        self._start = LeftOutFiles()
        self._listing = b""
        own_folder = folder.relative_to(project.root).as_posix() if folder.is_relative_to(project.root) else ""
        self._own_folder = "" if document else own_folder
        self._document_folders = frozenset(list_parents(document))
        state = {document, own_folder} if document else set()
        environment = (sys.prefix,) if sys.prefix != sys.base_prefix else ()
        self._skipped = frozenset(state.union(_make_relative(project.root, (*opened, *environment))))

    def record(self) -> str:
        """List the files before the first edit, and archive small ones; return the hash of the listing."""
        self._start = self._archive_files(self._scan())
        self._listing = self._start.to_json()
        self._write_listing()
        return hashlib.sha256(self._listing).hexdigest()

    def _write_listing(self) -> None:
        disk.make_folder(self._folder)
        disk.write_atomically(self._folder / LISTING, self._listing)

    def open(self, listing_hash: str) -> None:
        """Load the listing that `record` wrote; raise `StateError` if it was changed since."""
        data = disk.read_file(self._folder / LISTING) or b""
        if hashlib.sha256(data).hexdigest() != listing_hash:
            raise StateError(
                f"{self._folder / LISTING} is not as this run wrote it: bring it back, or start anew with --loop-task"
            )
        self._listing = data
        self._start = LeftOutFiles.from_json(data)
        self._archive.open_existing()

    def close(self) -> None:
        """Close the archive; write it and the listing again if an agent removed the folder of the run."""
        with suppress(StateError):  # the project itself may be gone
            self._archive.rewrite_if_removed()
            if self._listing and disk.read_file(self._folder / LISTING) != self._listing:
                self._write_listing()
        self._archive.close()

    def _is_discarded(self, path: str) -> bool:
        """Return whether a path is in the folder of discarded edits."""
        return bool(self._own_folder) and PurePath(path).is_relative_to(f"{self._own_folder}/{DISCARDED_FOLDER}")

    def _is_cache_or_output(self, path: str) -> bool:
        """Return whether a file is part of a cache, or output of sessions."""
        outputs = self._project.scope.outputs
        return (
            is_cache(path) or path in outputs or any(f"{folder}/" in outputs for folder in (*list_parents(path), path))
        )

    @contextmanager
    def enter(self, further_paths: Sequence[str] = ()) -> Iterator[RoomReport]:
        """Restore the left-out files to the start of the run, and put everything back after the block.

        Set `further_paths` aside, too.
        """
        current = self._scan(self._start.folders)
        changes = compare_left_out(self._start, current)
        contents = {path: self._find_content(path) for path in (*changes.modified, *changes.removed)}
        report = self._report_changes(changes, contents)
        if not (current.is_complete and self._start.is_complete):
            report.unverified["ignored files"] = "there are too many to compare them"
        replaced = [path for path in changes.modified if path not in report.unverified]
        moved = (*replaced, *changes.added, *further_paths)
        written = tuple(path for path in changes.removed if contents[path] is not None)
        if not moved and not written:
            yield report
            return
        root = os.path.relpath(self._root, self._folder)
        write_journal(self._folder, Journal(root, moved, written, tuple(self._list_missing_folders(written))))
        try:
            self._set_aside(moved, report)
            self._write_contents({path: data for path, data in contents.items() if data is not None}, report)
            yield report
        finally:
            put_back(self._folder)

    def _report_changes(self, changes: FileChanges, contents: Mapping[str, bytes | None]) -> RoomReport:
        """Return the paths that changed, and those whose content at the start is not archived."""
        paths = [path for path in changes.paths if not self._is_cache_or_output(path)]
        report = RoomReport([path for path in paths if not self._is_discarded(path)])
        for path, content in contents.items():
            if content is None and not self._is_cache_or_output(path):
                report.unverified[path] = "it changed, and what it was is not kept"
        return report

    # -- the files

    def _scan(self, known: frozenset[str] | None = None) -> LeftOutFiles:
        project = self._project
        scope = LeftOutScope(
            project.current.entries,
            project.current.folders | self._document_folders,
            frozenset(project.session_outputs),
            self._skipped,
            project.scope.runs_folder,
            self._own_folder,
        )
        return LeftOutScanner(self._root, scope, known).scan()

    def _archive_files(self, files: LeftOutFiles) -> LeftOutFiles:
        """Return the files with the hashes of those whose contents are archived: within bounds, caches last."""
        chosen: dict[str, FileEntry] = {}
        total, deadline = 0, time.monotonic() + MAX_SECONDS
        for path in sorted(files.entries, key=lambda path: (_is_tool_file(path), files.entries[path].size)):
            entry = files.entries[path]
            if len(chosen) >= MAX_FILES or total + entry.size > MAX_TOTAL or time.monotonic() > deadline:
                break
            if entry.kind is not FileKind.OTHER and entry.size <= MAX_SIZE:
                total += entry.size
                if digest := _hash_path(f"{self._root}/{path}", entry):
                    chosen[path] = replace(entry, digest=digest)
        missed = self._archive.add_files(self._project.root, FileTree(chosen)) if chosen else ()
        archived = {path: entry for path, entry in chosen.items() if path not in missed}
        return replace(files, entries={**files.entries, **archived})

    def _find_content(self, path: str) -> bytes | None:
        digest = self._start.entries[path].digest
        return self._archive.get_content(digest) if digest else None

    def _list_missing_folders(self, paths: Iterable[str]) -> list[str]:
        """Return the folders of files that are going to be written and that do not exist, the innermost first."""
        parents = {parent for path in paths for parent in list_parents(path)}
        missing = [folder for folder in parents if not os.path.isdir(f"{self._root}/{folder}")]  # noqa: PTH112 - called for many files
        return sorted(missing, key=len, reverse=True)

    def _set_aside(self, paths: Sequence[str], report: RoomReport) -> None:
        """Move each path into one folder, under its number in the journal as a name."""
        if not paths:
            return
        aside = self._folder / ASIDE
        aside.mkdir(exist_ok=True)
        for number, path in enumerate(paths):
            try:
                os.rename(f"{self._root}/{path}", f"{aside}/{number}")  # noqa: PTH104 - called for many files
            except OSError as error:
                report.unverified[path] = f"it cannot be set aside: {disk.describe_error(error)}"
        aside.chmod(0)  # so that a product finds no files there, unless it runs as root

    def _write_contents(self, contents: dict[str, bytes], report: RoomReport) -> None:
        for path, data in contents.items():
            if path in report.unverified:
                continue
            entry = self._start.entries[path]
            try:
                file_writer.write_entry(self._project.root, path, entry, data)
                if entry.stamp and entry.kind is FileKind.FILE:  # tools rebuild a file that is older than its source
                    os.utime(f"{self._root}/{path}", ns=(get_modification_time(entry.stamp),) * 2)
            except (OSError, StateError) as error:
                report.unverified[path] = f"it cannot be replaced: {error}"


def _make_relative(root: Path, paths: Iterable[str]) -> Iterator[str]:
    resolved = root.resolve()
    for path in (Path(path).resolve() for path in paths):
        if path.is_relative_to(resolved) and path != resolved:
            yield path.relative_to(resolved).as_posix()


def _is_tool_file(path: str) -> bool:
    return is_cache(path) or not TOOL_FOLDERS.isdisjoint(path.split("/"))


def _hash_path(path: str, entry: FileEntry) -> str:
    try:
        if entry.kind is FileKind.LINK:
            return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()  # noqa: PTH115 - called for many files
        return disk.hash_file(Path(path))
    except OSError:
        return ""
