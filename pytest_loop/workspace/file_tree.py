"""The files of a project as they are: looked at one by one, by content, whatever git or a clock says about them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import gitignore
from pytest_loop.workspace.gitignore import GIT, IGNORES
from pytest_loop.workspace.path_patterns import IgnoredPaths, IgnoreFile, PathPatterns

# What tools leave beside the files of a project.
LEFT_OUT = frozenset(
    {GIT, "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".tox", ".nox"}
)
_LEFT_OUT_END = ".egg-info"
_ENVIRONMENT = "pyvenv.cfg"
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PIECE = 1 << 20
# A file written twice within one tick of the disk's clock looks the same: younger ones are read again.
_YOUNG = 2_000_000_000


class FileKind(str, Enum):
    """What stands at a path: closed is a folder that nobody may look into, other a pipe, a socket or a device."""

    FILE = "file"
    LINK = "link"
    CLOSED = "closed"
    OTHER = "other"


Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path; equal where kind, content and the right to run it are.

    `digest` is the SHA-256 of a file's content or of a link's target, empty where there is none or nobody may read it.
    """

    kind: FileKind
    digest: str = ""
    is_executable: bool = False
    mode: int = field(default=0o644, compare=False)
    size: int = field(default=0, compare=False)
    stamp: Stamp | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ScanScope:
    """Where to look: not in the folder of the runs, not at what git ignores, unless that is sealed; and at how many.

    `outputs` are files that judging makes, and folders (with a slash at the end) that hold nothing else.
    """

    run_folder: str = ".loop"
    sealed: PathPatterns = field(default_factory=lambda: PathPatterns(()))
    max_files: int = 1_000_000
    outputs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FileTree:
    """What one look has found. Paths are relative, with slashes; bytes that are no UTF-8 are surrogates.

    `environments` are virtual environments that were left out.
    """

    entries: Mapping[str, FileEntry]
    folders: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    ignored: IgnoredPaths = field(default_factory=IgnoredPaths)

    @cached_property
    def digest(self) -> str:
        """One hash for all: two trees with the same one hold the same."""
        whole = hashlib.sha256()
        for path in sorted(self.entries):
            one = self.entries[path]
            whole.update(os.fsencode(path) + f"\0{one.kind.value} {one.digest} {one.is_executable:d}\0".encode())
        return whole.hexdigest()

    def to_json(self) -> bytes:
        """As bytes, for another day; the stamps are not among them."""
        data = {
            "entries": {
                path: [one.kind.value, one.digest, one.is_executable, one.mode, one.size]
                for path, one in self.entries.items()
            },
            "folders": sorted(self.folders),
            "environments": sorted(self.environments),
            "ignored": self.ignored.lines,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes) -> FileTree:
        """What `dump` gave; anything else is an error."""
        try:
            found = json.loads(data)
            return cls(
                {path: FileEntry(FileKind(kind), *others) for path, (kind, *others) in found["entries"].items()},
                frozenset(found["folders"]),
                frozenset(found["environments"]),
                IgnoredPaths({folder: tuple(lines) for folder, lines in found["ignored"].items()}),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"expected the files of a project as they were, found something else: {error}") from None


@dataclass(frozen=True)
class FileChanges:
    """The paths that differ between two trees."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted((*self.added, *self.removed, *self.modified)))

    def select(self, globs: PathPatterns) -> FileChanges:
        """What of it the patterns match."""
        return self._where(globs, fits=True)

    def exclude(self, globs: PathPatterns) -> FileChanges:
        """What of it the patterns do not match."""
        return self._where(globs, fits=False)

    def _where(self, globs: PathPatterns, *, fits: bool) -> FileChanges:
        parts = (self.added, self.removed, self.modified)
        return FileChanges(*(tuple(path for path in part if globs.matches(path) is fits) for part in parts))


def compare_trees(before: FileTree, after: FileTree) -> FileChanges:
    """What was added, removed and modified, each in the order of names."""
    old, new = before.entries, after.entries
    return FileChanges(
        added=tuple(sorted(path for path in new if path not in old)),
        removed=tuple(sorted(path for path in old if path not in new)),
        modified=tuple(sorted(path for path, one in new.items() if path in old and old[path] != one)),
    )


def scan_files(root: Path, scope: ScanScope, before: FileTree | None = None, *, trust_stat: bool = False) -> FileTree:
    """The files of a project now.

    `before` is an earlier look: what is ignored and which folders are environments was settled there. Who is trusting
    does not read a file again whose size, times and inode are as they were then; the final judgement never is.
    """
    return _Look(root, scope, before, trusting=trust_stat).tree()


def read_entry(root: Path, path: str, entry: FileEntry, largest: int) -> bytes | None:
    """The content of a file, or the target of a link; None where it is too large or no longer what the look found."""
    if not entry.digest or entry.size > largest:
        return None
    where = os.path.join(root, path)  # noqa: PTH118 - there may be many
    try:
        data = _target(where) if entry.kind is FileKind.LINK else b"".join(_pieces(where, entry.size + 1))
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == entry.digest else None


class _Look:
    def __init__(self, root: Path, scope: ScanScope, before: FileTree | None, *, trusting: bool) -> None:
        self._root = os.fspath(root)
        self._scope = scope
        self._before = before
        self._known = before.entries if before and trusting else {}
        self._old = time.time_ns() - _YOUNG
        self._lines = dict(before.ignored.lines if before else gitignore.read_outer_lines(root))
        self._entries: dict[str, FileEntry] = {}
        self._folders: set[str] = set()
        self._environments: set[str] = set()

    def tree(self) -> FileTree:
        waiting: list[tuple[str, tuple[IgnoreFile, ...], bool]] = [
            ("", IgnoredPaths(self._lines).get_outer_files(), False)
        ]
        while waiting:
            waiting += self._inside(*waiting.pop())
        ignored = self._before.ignored if self._before else IgnoredPaths(self._lines)
        return FileTree(self._entries, frozenset(self._folders), frozenset(self._environments), ignored)

    def _inside(
        self, folder: str, levels: tuple[IgnoreFile, ...], is_ignored: bool
    ) -> Iterator[tuple[str, tuple[IgnoreFile, ...], bool]]:
        """Take the files of a folder; gives the folders in it."""
        found = self._listed(folder)
        if self._is_environment(folder, found):
            self._environments.add(folder)
            return
        if folder and not is_ignored:
            self._folders.add(folder)
        levels = self._deeper(folder, levels, found)
        prefix = f"{folder}/" if folder else ""
        for name, one in found.items():
            path = prefix + name
            if one.is_dir(follow_symlinks=False):
                if not self._is_left_out(path, name):
                    hidden = is_ignored or _is_ignored(levels, f"{path}/")
                    if not hidden or self._scope.sealed:
                        yield path, levels, hidden
            elif path in self._scope.outputs:
                continue
            elif name != GIT and (not (is_ignored or _is_ignored(levels, path)) or self._scope.sealed.matches(path)):
                self._take(one, path)

    def _listed(self, folder: str) -> dict[str, os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, folder)) as found:  # noqa: PTH118 - names may be any bytes, and many
                return {one.name: one for one in found}
        except OSError as error:
            if not folder:
                raise StateError(f"cannot look at the project {self._root}: {disk.describe_error(error)}") from None
            self._entries[folder] = FileEntry(FileKind.CLOSED)
            return {}

    def _is_environment(self, folder: str, found: Mapping[str, object]) -> bool:
        """A file named pyvenv.cfg hides no folder that was looked into before."""
        if not folder or (self._before and folder in self._before.folders):
            return False
        return _ENVIRONMENT in found or bool(self._before and folder in self._before.environments)

    def _is_left_out(self, path: str, name: str) -> bool:
        is_made = name in LEFT_OUT or name.endswith(_LEFT_OUT_END) or f"{path}/" in self._scope.outputs
        return is_made or path == self._scope.run_folder

    def _deeper(
        self, folder: str, levels: tuple[IgnoreFile, ...], found: Mapping[str, object]
    ) -> tuple[IgnoreFile, ...]:
        if self._before is None and IGNORES in found:
            path = Path(self._root, folder, IGNORES)
            self._lines[folder] = self._lines.get(folder, ()) + gitignore.read_lines(path)
        level = IgnoredPaths(self._lines).get_file(folder)
        return (level, *levels) if level else levels

    def _take(self, one: os.DirEntry[str], path: str) -> None:
        if len(self._entries) >= self._scope.max_files:
            raise StateError(
                f"expected at most {self._scope.max_files:,} files in the project {self._root}, found more: "
                "remove them, or name in .gitignore what is not to be looked at"
            )
        with suppress(FileNotFoundError):  # it was there a moment ago
            self._entries[path] = self._entry(one, path)

    def _entry(self, one: os.DirEntry[str], path: str) -> FileEntry:
        found = one.stat(follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            target = _target(one.path)
            return FileEntry(FileKind.LINK, hashlib.sha256(target).hexdigest(), mode=0o777, size=len(target))
        if not stat.S_ISREG(found.st_mode):
            return FileEntry(FileKind.OTHER)
        stamp = (found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
        known = self._known.get(path)
        trusted = known is not None and known.stamp == stamp and known.kind is FileKind.FILE
        digest = known.digest if known and trusted else _digest(one.path, found.st_size)
        mode = stat.S_IMODE(found.st_mode)
        is_old = found.st_ctime_ns < self._old
        return FileEntry(FileKind.FILE, digest, bool(mode & 0o111), mode, found.st_size, stamp if is_old else None)


def _is_ignored(levels: tuple[IgnoreFile, ...], path: str) -> bool:
    """The deepest .gitignore that says anything decides."""
    for level in levels:
        answer = level.decide(path)
        if answer is not None:
            return answer
    return False


def _target(path: str) -> bytes:
    return os.fsencode(os.readlink(path))  # noqa: PTH115 - likewise


def _digest(path: str, size: int) -> str:
    """The hash of a file; of one that somebody is still writing to, of as much as there was."""
    whole = hashlib.sha256()
    try:
        for piece in _pieces(path, size):
            whole.update(piece)
    except FileNotFoundError:
        raise
    except OSError:
        return ""
    return whole.hexdigest()


def _pieces(path: str, size: int) -> Iterator[bytes]:
    """At most so many bytes of a file; a link is not followed, and a pipe makes nobody wait."""
    descriptor = os.open(path, _READING)
    try:
        while size > 0 and (piece := os.read(descriptor, min(size, _PIECE))):
            yield piece
            size -= len(piece)
    finally:
        os.close(descriptor)
