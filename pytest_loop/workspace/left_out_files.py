"""List the files of a project that scans leave out: ignored files, folders of tools, and others.

Left-out files are not part of the change that a user is shown. Of `.git` and the folders of runs, the list holds only
files that git and runs do not write themselves, because every commit and every run changes their own.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_loop.errors import StateError
from pytest_loop.workspace.file_tree import FileChanges, FileEntry, FileKind, make_stamp
from pytest_loop.workspace.gitignore import GIT_FOLDER

MAX_FILES = 200_000
MAX_SECONDS = 20.0
# The folders and files of tools that can be missing: the tools make them again.
CACHE_NAMES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".cache", ".coverage", "htmlcov"}
)
_RUN_MARKER = "history.jsonl"
# Names in the folder of a run that the run itself uses.
_RUN_FILES = (
    r"\.(lock|answer\.json|.*\.tmp)",
    r"(run|files.*|left-out|clean-room|before-candidates)\.json",
    r"(files|left-out)\.kept",
    r"history\.jsonl|artifact\.md|inferred\.rules\.yaml|run\.log|(stop|pause)\.request",
    r"tree|aside|candidate-\d+",
)
# Names in the folder of all runs; a killed run leaves the temporary files.
_SHARED_FILES = (r"current\.json|\.gitignore", r"\.(current\.json|\.gitignore)\.tmp")
# Paths in a `.git` folder that git itself uses.
_GIT_FILES = (
    r"([A-Z_]+_)?HEAD|(COMMIT_EDIT|TAG_EDIT|MERGE_|SQUASH_)MSG|MERGE_(MODE|RR)|AUTO_MERGE|BISECT_[A-Z]+",
    r"(index|config|config\.worktree|packed-refs|description|shallow|gitdir|commondir)(\.lock)?",
    r"objects/([0-9a-f]{2}/[0-9a-f]{38,62}|pack/(pack-|tmp_|multi-)[\w.-]*|info/[\w./-]*|[\w/]*tmp_\w+)",
    r"info/(exclude|attributes|refs|sparse-checkout)",
    r"(refs|logs|worktrees|modules|lfs|rr-cache|rebase-\w+|sequencer)(/.*)?",
)
_GIT_OBJECTS = f"{GIT_FOLDER}/objects/"


@dataclass(frozen=True)
class LeftOutScope:
    """Exclusions of the list: files that a scan lists, `outputs` of sessions, and `skipped` paths.

    `scanned_folders` never count as new, because a scan lists files in them. `runs_folder` is the folder of all runs,
    `own_folder` that of this run; both are empty if they are outside the project. All paths are relative.
    """

    scanned: Collection[str]
    scanned_folders: Collection[str] = ()
    outputs: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    runs_folder: str = ""
    own_folder: str = ""


@dataclass(frozen=True)
class LeftOutFiles:
    """The left-out files by path, the searched `folders`, and `new_folders`, which were not searched.

    An entry has a digest if its content is archived. `is_complete` is false if the search exceeded its limits.
    """

    entries: Mapping[str, FileEntry] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    new_folders: tuple[str, ...] = ()
    is_complete: bool = True

    def to_json(self) -> bytes:
        data = {
            "entries": {path: _encode_entry(entry) for path, entry in self.entries.items()},
            "folders": sorted(self.folders),
            "is_complete": self.is_complete,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> LeftOutFiles:
        """Load what `to_json` wrote; raise `StateError` for anything else."""
        try:
            data = json.loads(text)
            entries = {path: _decode_entry(*fields) for path, fields in data["entries"].items()}
            return cls(entries, frozenset(data["folders"]), is_complete=bool(data["is_complete"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"expected a list of files that are left out, found something else: {error}") from None


def _encode_entry(entry: FileEntry) -> list[object]:
    return [entry.kind.value, entry.digest, entry.mode, entry.size, (entry.stamp or b"").hex()]


def _decode_entry(kind: str, digest: str, mode: int, size: int, stamp: str) -> FileEntry:
    return FileEntry(FileKind(kind), digest, bool(mode & 0o111), mode, size, bytes.fromhex(stamp))


def is_cache(path: str) -> bool:
    """Return whether a file is part of a cache, or output of a tool."""
    parts = PurePosixPath(path).parts
    return any(part in CACHE_NAMES for part in parts) or parts[-1].startswith(".coverage.")


class LeftOutScanner:
    """Search a project for left-out files; a folder that is not in `known` is new, and is not searched."""

    def __init__(self, root: str, scope: LeftOutScope, known: Collection[str] | None = None) -> None:
        self._root = root
        self._scope = scope
        self._known = known

    def scan(self) -> LeftOutFiles:
        entries: dict[str, FileEntry] = {}
        folders: set[str] = set()
        new_folders: list[str] = []
        deadline = time.monotonic() + MAX_SECONDS
        queue = [""]
        while queue:
            if len(entries) > MAX_FILES or time.monotonic() > deadline:
                return LeftOutFiles(entries, frozenset(folders), tuple(new_folders), is_complete=False)
            for path, child in self._list_folder(queue.pop()):
                if child.is_dir(follow_symlinks=False):
                    if self._is_new(path):
                        new_folders.append(path)
                    else:
                        folders.add(path)
                        queue.append(path)
                elif child.name != GIT_FOLDER and (entry := make_entry(child.path)):  # in a worktree, it is a file
                    entries[path] = entry
        return LeftOutFiles(entries, frozenset(folders), tuple(sorted(new_folders)))

    def _is_new(self, path: str) -> bool:
        if self._known is None or path in self._known or path in self._scope.scanned_folders:
            return False
        is_run = path.rpartition("/")[0] == self._scope.runs_folder != ""
        return not is_run and _GIT_OBJECTS not in f"{path}/"

    def _list_folder(self, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield the files and folders that are left out, or may hold such files."""
        scope = self._scope
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                children = [*entries]
        except OSError:
            return
        if folder != scope.own_folder and self._is_run(folder, {child.name for child in children}):
            return
        for child in children:
            path = prefix + child.name
            is_excluded = path in scope.outputs or path in scope.scanned or path in scope.skipped
            if not is_excluded and not self._is_internal(folder, path, child.name):
                yield path, child

    def _is_run(self, folder: str, names: set[str]) -> bool:
        """Return whether a folder belongs to another run, which may be working."""
        return bool(folder) and folder.rpartition("/")[0] == self._scope.runs_folder != "" and _RUN_MARKER in names

    def _is_internal(self, folder: str, path: str, name: str) -> bool:
        """Return whether a path is one of git's own, or of the runs."""
        if folder == self._scope.own_folder != "":
            return _matches(_RUN_FILES, name)
        if folder == self._scope.runs_folder != "":
            return _matches(_SHARED_FILES, name)
        _, is_inside, inner = f"/{path}".rpartition(f"/{GIT_FOLDER}/")
        return _matches(_GIT_FILES, inner) if is_inside else False


def _matches(patterns: tuple[str, ...], text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def make_entry(path: str) -> FileEntry | None:
    """Return the entry of a file without its content; None if it does not exist."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    kind = FileKind.LINK if stat.S_ISLNK(status.st_mode) else FileKind.FILE
    if not stat.S_ISLNK(status.st_mode) and not stat.S_ISREG(status.st_mode):
        kind = FileKind.OTHER
    mode = stat.S_IMODE(status.st_mode)
    return FileEntry(kind, "", bool(mode & 0o111), mode, status.st_size, make_stamp(status))


def compare_left_out(before: LeftOutFiles, after: LeftOutFiles) -> FileChanges:
    """Return what changed since an earlier listing, by stamps."""
    old, new = before.entries, after.entries
    return FileChanges(
        added=(*after.new_folders, *(path for path in new if path not in old)),
        modified=tuple(path for path, entry in new.items() if path in old and old[path].stamp != entry.stamp),
        removed=tuple(path for path in old if path not in new),
    )
