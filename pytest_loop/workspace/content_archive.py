"""The content of files as they were, to put them back: without git, and also where an agent removes the run's folder.

One file holds them all: for each content its SHA-256, its length, and its bytes. It stays open, so that it outlives its
name; what is sealed is in memory too. Whatever is read from it is checked against its hash.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.file_tree import FileChanges, FileEntry, FileKind, FileTree, read_entry
from pytest_loop.workspace.path_patterns import PathPatterns

MAX_SIZE = 8 * 1024 * 1024
ROOM = 1024**3
MEMORY = 64 * 1024 * 1024
_HEAD = struct.Struct(">32sQ")


@dataclass(frozen=True)
class RestoreResult:
    """What became of it: the paths that are as they were, and those that are not, each with its reason."""

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()


class ContentArchive:
    """The contents that were kept."""

    def __init__(self, path: Path, *, largest: int = MAX_SIZE, room: int = ROOM, memory: int = MEMORY) -> None:
        self.path = path
        self._largest = largest
        self._room = room
        self._memory = memory
        self._held: dict[str, bytes] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._file: BinaryIO | None = None

    def __enter__(self) -> ContentArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def open_existing(self) -> None:
        """Take hold of a file that another process wrote, so that it outlives its name here too."""
        if disk.path_exists(self.path):
            self._opened()

    def rewrite_if_removed(self) -> None:
        """Write the file again where somebody took it away: what is in it can still be read."""
        if self._file is None:
            return
        ours = os.fstat(self._file.fileno())
        with suppress(OSError):
            if os.path.samestat(self.path.lstat(), ours):
                return
        self._file.flush()
        data = os.pread(self._file.fileno(), ours.st_size, 0)
        self.close()
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, data)
        self._opened()

    # -- keeping

    def add_files(self, root: Path, tree: FileTree, sealed: PathPatterns | None = None) -> tuple[str, ...]:
        """Keep the files of a tree, the sealed ones first; gives the paths of those that could not be kept."""
        first = {path for path in tree.entries if sealed and sealed.matches(path)}
        order = sorted(tree.entries, key=lambda path: (path not in first, path))
        with disk.translate_errors("write", self.path, "try again"):
            file = self._opened()
            missed = [one for one in order if not self._keep_one(file, root, one, tree.entries[one], hold=one in first)]
            file.flush()
            os.fsync(file.fileno())
        return tuple(sorted(missed))

    def _keep_one(self, file: BinaryIO, root: Path, path: str, entry: FileEntry, *, hold: bool) -> bool:
        if entry.digest in self._places:
            return True
        data = read_entry(root, path, entry, self._largest)
        if data is None:
            return False
        if hold and len(data) <= self._memory:
            self._memory -= len(data)
            self._held[entry.digest] = data
        place = file.seek(0, os.SEEK_END)
        if place + len(data) > self._room:
            return entry.digest in self._held
        file.write(_HEAD.pack(bytes.fromhex(entry.digest), len(data)) + data)
        self._places[entry.digest] = (place + _HEAD.size, len(data))
        return True

    def _opened(self) -> BinaryIO:
        """The file, with what it holds already: of this process, or of one that worked on the run before."""
        if self._file is None:
            disk.make_folder(self.path.parent)
            self._file = os.fdopen(disk.open_regular_file(self.path, os.O_RDWR | os.O_CREAT), "r+b")
            os.fchmod(self._file.fileno(), 0o600)  # what it holds may be for nobody else
            self._places = dict(_listed(self._file))
        return self._file

    # -- giving back

    def get_content(self, digest: str) -> bytes | None:
        """The bytes with that hash; None where they were not kept, or somebody has changed them since."""
        data = self._held.get(digest)
        if data is None:
            data = self._read(digest)
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def _read(self, digest: str) -> bytes | None:
        try:
            if self._file is None and not disk.path_exists(self.path):
                return None
            file = self._opened()
            place, length = self._places[digest]
            file.seek(place)
            return file.read(length)
        except (OSError, StateError, KeyError):
            return None

    def undo_changes(self, root: Path, before: FileTree, after: FileTree, change: FileChanges) -> RestoreResult:
        """Undo a change between two trees, or a part of one: what is new goes, and the rest is as it was."""
        removed, remain = _done(change.added, lambda path: file_writer.remove_path(root, path))
        for folder in sorted(_above(change.added) & (after.folders - before.folders), reverse=True):
            file_writer.remove_empty_folder(root, folder)
        others = sorted((*change.removed, *change.modified))
        restored, lost = _done(others, lambda path: self._put_one(root, path, before.entries[path]))
        return RestoreResult(restored, removed, remain + lost)

    def _put_one(self, root: Path, path: str, entry: FileEntry) -> None:
        if entry.kind not in (FileKind.FILE, FileKind.LINK):
            raise StateError("it was no file")
        data = self.get_content(entry.digest)
        if data is None:
            raise StateError("its content was not kept")
        if entry.kind is FileKind.LINK:
            file_writer.write_link(root, path, data)
        else:
            file_writer.write_file(root, path, data, entry.mode)


def _done(paths: Iterable[str], act: Callable[[str], None]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Where it was done, and where not, with the reason: one that fails does not stop the others."""
    done, failed = [], []
    for path in paths:
        try:
            act(path)
            done.append(path)
        except StateError as error:
            failed.append((path, str(error)))
    return tuple(done), tuple(failed)


def _above(paths: Iterable[str]) -> set[str]:
    """The folders that paths lie in."""
    found = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in found:
            found.add(path)
    return found


def _listed(file: BinaryIO) -> Iterator[tuple[str, tuple[int, int]]]:
    """What the file holds; what a crash left unfinished at its end is cut off."""
    end = file.seek(0, os.SEEK_END)
    place = 0
    while place + _HEAD.size <= end:
        file.seek(place)
        digest, length = _HEAD.unpack(file.read(_HEAD.size))
        if place + _HEAD.size + length > end:
            break
        yield digest.hex(), (place + _HEAD.size, length)
        place += _HEAD.size + length
    file.truncate(place)
