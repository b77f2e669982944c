"""Archive the contents of files before an edit, so that they can be restored without git.

One file holds, for each content, its SHA-256, its length and its bytes. The file stays open, so that deleting it
loses nothing; sealed contents are also in memory. Every content that is read is checked against its hash.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.file_scan import read_entry
from pytest_loop.workspace.file_tree import FileChanges, FileEntry, FileKind, FileTree, list_parents
from pytest_loop.workspace.path_patterns import PathPatterns

MAX_SIZE = 8 * 1024 * 1024
MAX_TOTAL = 1024**3
MAX_MEMORY = 64 * 1024 * 1024
_HEADER = struct.Struct(">32sQ")


@dataclass(frozen=True)
class RestoreResult:
    """The paths that were restored and removed, and those that could not be, each with the reason."""

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()


class ContentArchive:
    """The archive file of one run."""

    def __init__(self, path: Path, *, max_size: int = MAX_SIZE, max_total: int = MAX_TOTAL) -> None:
        self.path = path
        self._max_size = max_size
        self._max_total = max_total
        self._free_memory = MAX_MEMORY
        self._in_memory: dict[str, bytes] = {}
        self._offsets: dict[str, tuple[int, int]] = {}
        self._file: BinaryIO | None = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def open_existing(self) -> None:
        """Open a file that another process wrote, so that deleting it loses nothing."""
        if disk.path_exists(self.path):
            self._open()

    def rewrite_if_removed(self) -> None:
        """Write the file again if it was deleted or replaced while it is open."""
        if self._file is None or disk.is_same_file(self.path, self._file.fileno()):
            return
        self._file.flush()
        self._file.seek(0)
        data = self._file.read()
        self.close()
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, data)
        self._open()

    def _open(self) -> BinaryIO:
        """Return the file; the first call opens it and reads its index."""
        if self._file is None:
            disk.make_folder(self.path.parent)
            self._file = os.fdopen(disk.open_regular_file(self.path, os.O_RDWR | os.O_CREAT), "r+b")
            os.fchmod(self._file.fileno(), 0o600)  # the contents may be private
            self._offsets = _recover_index(self._file)
        return self._file

    # -- adding

    def add_files(self, root: Path, tree: FileTree, sealed: PathPatterns | None = None) -> tuple[str, ...]:
        """Archive the files of a tree, the sealed ones first; return the paths of those that could not be archived."""
        with disk.translate_errors("write", self.path, "try again"):
            file = self._open()
            new_paths = [path for path, entry in tree.entries.items() if entry.digest not in self._offsets]
            sealed_paths = {path for path in new_paths if sealed and sealed.matches(path)}
            missed = [
                path
                for path in sorted(new_paths, key=lambda path: (path not in sealed_paths, path))
                if not self._add_file(file, root, path, tree.entries[path], in_memory=path in sealed_paths)
            ]
            file.flush()
            os.fsync(file.fileno())
        return tuple(sorted(missed))

    def _add_file(self, file: BinaryIO, root: Path, path: str, entry: FileEntry, *, in_memory: bool) -> bool:
        if entry.digest in self._offsets:  # archived already for another file
            return True
        data = read_entry(root, path, entry, self._max_size)
        if data is None:
            return False
        if in_memory and len(data) <= self._free_memory:
            self._free_memory -= len(data)
            self._in_memory[entry.digest] = data
        offset = file.seek(0, os.SEEK_END)
        if offset + len(data) > self._max_total:
            return entry.digest in self._in_memory
        file.write(_HEADER.pack(bytes.fromhex(entry.digest), len(data)) + data)
        self._offsets[entry.digest] = (offset + _HEADER.size, len(data))
        return True

    # -- restoring

    def get_content(self, digest: str) -> bytes | None:
        """Return the content with this hash, or None if it was not archived or was changed in the archive."""
        data = self._in_memory.get(digest)
        if data is None:
            data = self._read_content(digest)
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def _read_content(self, digest: str) -> bytes | None:
        try:
            if self._file is None and not disk.path_exists(self.path):
                return None
            file = self._open()
            offset, length = self._offsets[digest]
            file.seek(offset)
            return file.read(length)
        except (OSError, StateError, KeyError):
            return None

    def undo_changes(self, root: Path, before: FileTree, after: FileTree, changes: FileChanges) -> RestoreResult:
        """Undo changes between two trees: remove added files, and restore the removed and modified ones."""
        removed, remaining = _apply_each(changes.added, lambda path: file_writer.remove_path(root, path))
        parents = {folder for path in changes.added for folder in list_parents(path)}
        for folder in sorted(parents & (after.folders - before.folders), reverse=True):
            file_writer.remove_empty_folder(root, folder)
        paths = sorted((*changes.removed, *changes.modified))
        restored, lost = _apply_each(paths, lambda path: self._restore_file(root, path, before.entries[path]))
        return RestoreResult(restored, removed, remaining + lost)

    def _restore_file(self, root: Path, path: str, entry: FileEntry) -> None:
        if entry.kind not in (FileKind.FILE, FileKind.LINK):
            raise StateError("it was no file")
        data = self.get_content(entry.digest)
        if data is None:
            raise StateError("its content was not kept")
        file_writer.write_entry(root, path, entry, data)


def _apply_each(
    paths: Iterable[str], action: Callable[[str], None]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Apply an action to each path; return the paths where it succeeded, and the others, each with the reason."""
    succeeded, failed = [], []
    for path in paths:
        try:
            action(path)
            succeeded.append(path)
        except StateError as error:
            failed.append((path, str(error)))
    return tuple(succeeded), tuple(failed)


def _recover_index(file: BinaryIO) -> dict[str, tuple[int, int]]:
    """Return offset and length of each content by its hash; cut off an incomplete one at the end, left by a crash."""
    index = {}
    end = file.seek(0, os.SEEK_END)
    offset = 0
    while offset + _HEADER.size <= end:
        file.seek(offset)
        digest, length = _HEADER.unpack(file.read(_HEADER.size))
        if offset + _HEADER.size + length > end:
            break
        index[digest.hex()] = (offset + _HEADER.size, length)
        offset += _HEADER.size + length
    file.truncate(offset)
    return index
