"""Scan a project: list its files and hash their contents, without git."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import gitignore
from pytest_loop.workspace.file_tree import FileEntry, FileKind, FileTree, make_stamp
from pytest_loop.workspace.gitignore import GIT_FOLDER, IgnoredPaths, IgnoreFile, is_ignored
from pytest_loop.workspace.path_patterns import PathPatterns

# Folders that tools create beside the files of a project.
TOOL_FOLDERS = frozenset(
    {GIT_FOLDER, "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".tox", ".nox"}
)
_TOOL_FOLDER_SUFFIX = ".egg-info"
_ENVIRONMENT_FILE = "pyvenv.cfg"
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CHUNK = 1 << 20
# A file written twice within one tick of the disk's clock keeps its stamp, so younger files are always read.
_YOUNG_NS = 2_000_000_000


@dataclass(frozen=True)
class ScanScope:
    """The scope of a scan: all files except `runs_folder`, which holds all runs, and ignored files that are not sealed.

    `outputs` are files that checks write, and folders (with a slash at the end) that hold nothing else.
    """

    runs_folder: str = ".loop"
    sealed: PathPatterns = field(default_factory=lambda: PathPatterns(()))
    max_files: int = 1_000_000
    outputs: frozenset[str] = frozenset()


def scan_files(root: Path, scope: ScanScope, before: FileTree | None = None, known: FileTree | None = None) -> FileTree:
    """List and hash the files of a project.

    `before` is an earlier scan, which decided what is ignored and which folders are environments. A file with the
    size, times and inode that it has in `known` is not read again; `known` itself is returned if nothing differs.
    """
    return _Scanner(root, scope, before, known).scan()


def read_entry(root: Path, path: str, entry: FileEntry, max_size: int) -> bytes | None:
    """Read a file, or the target of a link; return None if it is too large or differs from its entry."""
    if not entry.digest or entry.size > max_size:
        return None
    full_path = os.path.join(root, path)  # noqa: PTH118 - called for many files
    try:
        is_link = entry.kind is FileKind.LINK
        data = _read_target(full_path) if is_link else b"".join(_read_chunks(full_path, entry.size + 1))
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == entry.digest else None


class _Folder(NamedTuple):
    """A folder to scan, with the .gitignore files that apply in it, the nearest first."""

    path: str
    ignore_files: tuple[IgnoreFile, ...]
    is_ignored: bool


class _Scanner:
    def __init__(self, root: Path, scope: ScanScope, before: FileTree | None, known: FileTree | None) -> None:
        self._root = os.fspath(root)
        self._scope = scope
        self._before = before
        self._known = known or FileTree({})
        self._new_entries = 0
        self._stable_before = time.time_ns() - _YOUNG_NS
        self._ignore_lines = dict(before.ignored.lines if before else gitignore.read_outer_lines(root))
        self._entries: dict[str, FileEntry] = {}
        self._folders: set[str] = set()
        self._environments: set[str] = set()

    def scan(self) -> FileTree:
        queue = [_Folder("", IgnoredPaths(self._ignore_lines).get_outer_files(), is_ignored=False)]
        while queue:
            queue += self._scan_folder(queue.pop())
        ignored = self._before.ignored if self._before else IgnoredPaths(self._ignore_lines)
        tree = FileTree(self._entries, frozenset(self._folders), frozenset(self._environments), ignored)
        is_same = not self._new_entries and len(tree.entries) == len(self._known.entries)
        return self._known if is_same and tree.has_folders_of(self._known) else tree

    def _scan_folder(self, folder: _Folder) -> Iterator[_Folder]:
        """Add the files of a folder, and yield its subfolders."""
        children = self._list_folder(folder.path)
        if self._is_environment(folder.path, children):
            self._environments.add(folder.path)
            return
        if folder.path and not folder.is_ignored:
            self._folders.add(folder.path)
        ignore_files = self._add_ignore_file(folder, children)
        prefix = f"{folder.path}/" if folder.path else ""
        known = self._known.entries
        for name, child in children.items():
            path = prefix + name
            if path in known and self._add_known_file(child, path, known[path]):
                continue
            if child.is_dir(follow_symlinks=False):
                if not self._is_excluded(path, name):
                    is_path_ignored = folder.is_ignored or is_ignored(ignore_files, f"{path}/")
                    if not is_path_ignored or self._scope.sealed:
                        yield _Folder(path, ignore_files, is_path_ignored)
            elif name != GIT_FOLDER and path not in self._scope.outputs:
                is_path_ignored = folder.is_ignored or is_ignored(ignore_files, path)
                if not is_path_ignored or self._scope.sealed.matches(path):
                    self._add_file(child, path)

    def _list_folder(self, folder: str) -> dict[str, os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, folder)) as children:  # noqa: PTH118 - called for many folders
                return {child.name: child for child in children}
        except OSError as error:
            if not folder:
                raise StateError(f"cannot look at the project {self._root}: {disk.describe_error(error)}") from None
            self._entries[folder] = FileEntry(FileKind.CLOSED)
            return {}

    def _is_environment(self, folder: str, children: Mapping[str, object]) -> bool:
        """Return whether a folder is a virtual environment; a new pyvenv.cfg cannot exclude a folder scanned before."""
        if not folder or (self._before and folder in self._before.folders):
            return False
        return _ENVIRONMENT_FILE in children or bool(self._before and folder in self._before.environments)

    def _is_excluded(self, path: str, name: str) -> bool:
        is_tool_folder = name in TOOL_FOLDERS or name.endswith(_TOOL_FOLDER_SUFFIX)
        return is_tool_folder or f"{path}/" in self._scope.outputs or path == self._scope.runs_folder

    def _add_ignore_file(self, folder: _Folder, children: Mapping[str, object]) -> tuple[IgnoreFile, ...]:
        if self._before is None and gitignore.FILE_NAME in children:
            lines = gitignore.read_lines(Path(self._root, folder.path, gitignore.FILE_NAME))
            self._ignore_lines[folder.path] = self._ignore_lines.get(folder.path, ()) + lines
        ignore_file = IgnoredPaths(self._ignore_lines).get_file(folder.path)
        return (ignore_file, *folder.ignore_files) if ignore_file else folder.ignore_files

    def _add_known_file(self, file: os.DirEntry[str], path: str, entry: FileEntry) -> bool:
        """Add the entry of an earlier scan if the file still has its stamp, and return whether it has."""
        if entry.stamp is None or path in self._scope.outputs:
            return False
        try:
            is_same = entry.stamp == make_stamp(file.stat(follow_symlinks=False))
        except FileNotFoundError:  # removed since the folder was listed
            return False
        if is_same:
            self._entries[path] = entry
        return is_same

    def _add_file(self, file: os.DirEntry[str], path: str) -> None:
        self._new_entries += 1
        if len(self._entries) >= self._scope.max_files:
            raise StateError(
                f"expected at most {self._scope.max_files:,} files in the project {self._root}, found more: "
                "remove them, or name in .gitignore what is not to be looked at"
            )
        with suppress(FileNotFoundError):  # removed since the folder was listed
            self._entries[path] = self._make_entry(file)

    def _make_entry(self, file: os.DirEntry[str]) -> FileEntry:
        status = file.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = _read_target(file.path)
            return FileEntry(FileKind.LINK, hashlib.sha256(target).hexdigest(), mode=0o777, size=len(target))
        if not stat.S_ISREG(status.st_mode):
            return FileEntry(FileKind.OTHER)
        digest = _hash_file(file.path, status.st_size)
        mode = stat.S_IMODE(status.st_mode)
        stamp = make_stamp(status) if status.st_ctime_ns < self._stable_before else None
        return FileEntry(FileKind.FILE, digest, bool(mode & 0o111), mode, status.st_size, stamp)


def _read_target(path: str) -> bytes:
    return os.fsencode(os.readlink(path))  # noqa: PTH115 - called for many files


def _hash_file(path: str, size: int) -> str:
    """Return the hash of the first `size` bytes of a file, or an empty string if it cannot be read."""
    digest = hashlib.sha256()
    try:
        for chunk in _read_chunks(path, size):
            digest.update(chunk)
    except FileNotFoundError:
        raise
    except OSError:
        return ""
    return digest.hexdigest()


def _read_chunks(path: str, size: int) -> Iterator[bytes]:
    """Read at most `size` bytes of a file, without following a link or waiting for a pipe."""
    descriptor = os.open(path, _READ_FLAGS)
    try:
        while size > 0 and (chunk := os.read(descriptor, min(size, _CHUNK))):
            yield chunk
            size -= len(chunk)
    finally:
        os.close(descriptor)
