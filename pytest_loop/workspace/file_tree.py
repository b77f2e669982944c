"""The files of a project as values: what a scan found, and what changed between two scans."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from pytest_loop.errors import StateError
from pytest_loop.workspace.gitignore import IgnoredPaths
from pytest_loop.workspace.path_patterns import PathPatterns


class FileKind(str, Enum):
    """The kind of a path: CLOSED is an unreadable folder, OTHER a pipe, a socket or a device."""

    FILE = "file"
    LINK = "link"
    CLOSED = "closed"
    OTHER = "other"


# Packed size, time of modification, inode, and time of the last change: a quarter of the memory of a tuple.
Stamp = bytes
_STAMP = struct.Struct("=qqQq")
_BATCH = 1000
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path; entries are equal if kind, content and executable bit are. `stamp` differs once a file was written.

    `digest` is the SHA-256 of a file's content or of a link's target, empty if there is none or it cannot be read.
    """

    kind: FileKind
    digest: str = ""
    is_executable: bool = False
    mode: int = field(default=0o644, compare=False)
    size: int = field(default=0, compare=False)
    stamp: Stamp | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class FileTree:
    """The files that one scan found. Paths are relative, with slashes; bytes that are not UTF-8 are surrogates.

    `environments` are virtual environments, whose files are left out; `ignored` has the lines of .gitignore files.
    """

    entries: Mapping[str, FileEntry]
    folders: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    ignored: IgnoredPaths = field(default_factory=IgnoredPaths)

    @cached_property
    def digest(self) -> str:
        """One hash for all entries: trees with the same hash hold the same files."""
        digest = hashlib.sha256()
        for path in sorted(self.entries):
            entry = self.entries[path]
            digest.update(os.fsencode(path) + f"\0{entry.kind.value} {entry.digest} {entry.is_executable:d}\0".encode())
        return digest.hexdigest()

    def has_folders_of(self, other: FileTree) -> bool:
        """Return whether both trees have the same folders, environments and ignore files."""
        return (self.folders, self.environments, self.ignored) == (other.folders, other.environments, other.ignored)

    def to_json(self, base: FileTree | None = None) -> bytes:
        """Serialize the tree without its stamps; with a `base`, only what differs from that tree."""
        base = base or _EMPTY
        changes = compare_trees(base, self)
        data = {
            "base": base.digest,
            "removed": changes.removed,
            "folders": sorted(self.folders - base.folders),
            "removed_folders": sorted(base.folders - self.folders),
            "environments": sorted(self.environments),
            "ignored": {} if self.ignored == base.ignored else self.ignored.lines,
        }
        entries = self._encode_entries((*changes.added, *changes.modified))
        return b'%s,"entries":{%s}}' % (_encode(data).encode()[:-1], b",".join(entries))

    def _encode_entries(self, paths: Sequence[str]) -> Iterator[bytes]:
        """Yield JSON of entries in batches, because lists of the fields of all files would fill the memory."""
        for start in range(0, len(paths), _BATCH):
            entries = ((path, self.entries[path]) for path in paths[start : start + _BATCH])
            batch = {
                path: [entry.kind, entry.digest, entry.is_executable, entry.mode, entry.size] for path, entry in entries
            }
            yield _encode(batch).encode()[1:-1]

    @classmethod
    def from_json(cls, text: bytes, base: FileTree | None = None) -> FileTree:
        """Load a serialized tree; raise `StateError` for anything else, also if it was written with another base."""
        base = base or _EMPTY
        try:
            data = json.loads(text)
            _check_base(data["base"], base)
            removed, removed_folders = frozenset(data["removed"]), frozenset(data["removed_folders"])
            kept = {path: entry for path, entry in base.entries.items() if path not in removed}
            new = {path: FileEntry(FileKind(kind), *fields) for path, (kind, *fields) in data["entries"].items()}
            return cls(
                {**kept, **new},
                base.folders.difference(removed_folders).union(data["folders"]),
                frozenset(data["environments"]),
                IgnoredPaths({folder: tuple(lines) for folder, lines in data["ignored"].items()} or base.ignored.lines),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"expected the files of a project as they were, found something else: {error}") from None


_EMPTY = FileTree({})


def _check_base(digest: str, base: FileTree) -> None:
    if digest != base.digest:
        raise ValueError("it belongs to other files")


@dataclass(frozen=True)
class FileChanges:
    """The paths that differ between two trees, each group sorted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted((*self.added, *self.removed, *self.modified)))

    def select(self, patterns: PathPatterns) -> FileChanges:
        """Return the changes of paths that match the patterns."""
        return self.filter(patterns.matches)

    def exclude(self, patterns: PathPatterns) -> FileChanges:
        """Return the changes of paths that do not match the patterns."""
        return self.filter(lambda path: not patterns.matches(path))

    def filter(self, fits: Callable[[str], bool]) -> FileChanges:
        """Return the changes of paths for which `fits` returns true."""
        groups = (self.added, self.removed, self.modified)
        return FileChanges(*(tuple(filter(fits, group)) for group in groups))


def compare_trees(before: FileTree, after: FileTree) -> FileChanges:
    """Return what was added, removed and modified between two scans."""
    old, new = before.entries, after.entries
    if old is new:
        return FileChanges()
    # A scan takes over the entries of files that did not change, and identity is quicker to compare.
    differing = [path for path, entry in new.items() if old.get(path) is not entry]
    return FileChanges(
        added=tuple(sorted(path for path in differing if path not in old)),
        removed=tuple(sorted(old.keys() - new.keys())),
        modified=tuple(sorted(path for path in differing if path in old and old[path] != new[path])),
    )


def list_parents(path: str) -> list[str]:
    """Return the folders of a relative path, the innermost first; those of `a/b/` are `a/b` and `a`."""
    parents = []
    while path := path.rpartition("/")[0]:
        parents.append(path)
    return parents


def read_stamp(path: str) -> Stamp | None:
    """Return the stamp of a path, or None if it does not exist; the stamp of a folder changes with its entries."""
    try:
        return make_stamp(os.lstat(path))
    except OSError:
        return None


def make_stamp(status: os.stat_result) -> Stamp:
    """Return what changes with a file."""
    return _STAMP.pack(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)


def get_modification_time(stamp: Stamp) -> int:
    """Return the time of modification in nanoseconds."""
    return int(_STAMP.unpack(stamp)[1])
