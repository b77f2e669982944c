"""The files of a project as commits on private refs; index, branch, HEAD, stash and configuration stay untouched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.file_tree import FileEntry, FileKind, FileTree, compare_trees, read_entry
from pytest_loop.workspace.git import DEADLINE, GitError
from pytest_loop.workspace.git_objects import AT_ONCE, FILE, LINK, MODULE, MOST_AT_ONCE, PROGRAM, GitEntry, GitObjects
from pytest_loop.workspace.git_repository import GitRepository

MAX_SIZE = 16 * 1024 * 1024
_RUN_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])(?!lock$))*")
_SAVED = "before-restore"


@dataclass(frozen=True)
class Checkpoint:
    """One commit; `left_out` are the paths that it could not hold."""

    number: int
    commit: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restored:
    """What became of the files, and the commit that holds them as they were before.

    Left alone is what no checkpoint of the run holds, or none can hold.
    """

    written: tuple[str, ...]
    removed: tuple[str, ...]
    left_alone: tuple[str, ...]
    saved: str


@dataclass(frozen=True)
class _Written:
    """The checkpoint that this process wrote last, with the tree it was made from."""

    checkpoint: Checkpoint
    tree: FileTree


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, root: Path, run_id: str, deadline: float = DEADLINE) -> None:
        if not _RUN_ID.fullmatch(run_id):
            raise StateError(f"expected letters, digits, dots, hyphens and underscores for a run, found {run_id!r}")
        self.root = root
        self.refs = f"refs/pytest-loop/{run_id}/"
        self._deadline = deadline
        self._last: _Written | None = None
        self._known_modules: dict[str, GitEntry] | None = None

    @cached_property
    def unavailable_reason(self) -> str:
        """Why there can be no checkpoints here; empty where there can."""
        try:
            self._repository  # noqa: B018 - it looks
        except GitError as error:
            return str(error)
        return ""

    @cached_property
    def _repository(self) -> GitRepository:
        return GitRepository.find(self.root, self._deadline)

    def list_all(self) -> list[Checkpoint]:
        """The checkpoints of the run, in order."""
        names = self._repository.list_refs(self.refs).items()
        numbered = [Checkpoint(int(name), commit) for name, commit in names if name.isascii() and name.isdigit()]
        return sorted(numbered, key=lambda one: one.number)

    def write(self, number: int, tree: FileTree, title: str = "") -> Checkpoint:
        """Make the files of a tree the checkpoint of that number, after those with smaller numbers."""
        before = [one.commit for one in self.list_all() if one.number < number]
        if self._last and self._last.checkpoint.number < number:
            before.append(self._last.checkpoint.commit)  # whatever somebody did to the refs
        written = self._write(str(number), before[-1] if before else "", tree, title or f"{self.refs}{number}")
        checkpoint = Checkpoint(number, written.commit, written.left_out)
        self._last = _Written(checkpoint, tree)
        return checkpoint

    def remove_all(self) -> None:
        """Forget all checkpoints of the run; git collects their objects some day."""
        for name in self._repository.list_refs(self.refs):
            self._repository.delete_ref(self.refs + name)
        self._last = None

    def restore(self, checkpoint: Checkpoint, tree: FileTree) -> Restored:
        """Make the files (`tree`: as they are) those of a checkpoint again; a commit holds them as they are before.

        Removed is only what another checkpoint of the run holds: other files of the person are in nobody's way.
        """
        known = self.list_all()
        parent = self._repository.list_refs(self.refs).get(_SAVED) or (known[-1].commit if known else "")
        saved = self._write(_SAVED, parent, tree, f"before the restore of {checkpoint.number}")
        with self._repository.open_objects() as objects:
            held = _files(objects.list_entries(checkpoint.commit))
            others = {path for one in known for path in _files(objects.list_entries(one.commit))}
            unsafe = {path for path in saved.left_out if tree.entries[path].kind is not FileKind.OTHER}
            new = {path for path in tree.entries if path not in held and not _is_inside(path, self._modules(objects))}
            removed = sorted((new & others) - unsafe)
            for path in removed:
                file_writer.remove_path(self.root, path)
            wanted = {
                path: one
                for path, one in held.items()
                if path not in unsafe and self._differs(objects, path, tree.entries.get(path), one)
            }
            for path, data in objects.contents(wanted):
                self._put(path, data, held[path].mode, tree.entries.get(path))
        alone = (new - {*removed}) | (unsafe & {*held})
        return Restored(tuple(sorted(wanted)), tuple(removed), tuple(sorted(alone)), saved.commit)

    def _write(self, name: str, parent: str, tree: FileTree, title: str) -> Checkpoint:
        with self._repository.open_objects() as objects:
            modules = self._modules(objects, parent)
            last = self._last if self._last and self._last.checkpoint.commit == parent else None
            change = compare_trees(last.tree if last else FileTree({}), tree)
            new = {path: tree.entries[path] for path in (*change.added, *change.modified)}
            fitting = {path: one for path, one in new.items() if _is_storable(path) and not _is_inside(path, modules)}
            put = {path: one for part in self._read(fitting) for path, one in _stored(objects, part, fitting).items()}
            gone = [path for path in (*change.removed, *change.modified) if path not in put] if last else None
            commit = objects.write_commit(parent or self._repository.read_head(), title, {**modules, **put}, gone)
        self._repository.set_ref(self.refs + name, commit)
        missed = {*(last.checkpoint.left_out if last else ()), *new} & {*tree.entries} - {*put}
        return Checkpoint(-1, commit, tuple(sorted(path for path in missed if not _is_inside(path, modules))))

    def _modules(self, objects: GitObjects, parent: str = "") -> dict[str, GitEntry]:
        """The submodules, which are left alone; settled by the first checkpoint, before the first edit."""
        if self._known_modules is None:
            if parent:
                self._known_modules = {
                    path: one for path, one in objects.list_entries(parent).items() if one.mode == MODULE
                }
            else:
                self._known_modules = {
                    path: GitEntry(MODULE, one) for path, one in self._repository.list_submodules().items()
                }
        return self._known_modules

    def _read(self, entries: Mapping[str, FileEntry]) -> Iterator[dict[str, bytes]]:
        """The contents, a bounded part at a time; what is too large, or no longer as it was seen, is not among them."""
        part: dict[str, bytes] = {}
        size = 0
        for path, entry in entries.items():
            data = read_entry(self.root, path, entry, MAX_SIZE)
            if data is None:
                continue
            part[path] = data
            size += len(data)
            if size > AT_ONCE or len(part) >= MOST_AT_ONCE:
                yield part
                part, size = {}, 0
        if part:
            yield part

    def _differs(self, objects: GitObjects, path: str, entry: FileEntry | None, held: GitEntry) -> bool:
        if entry is None or git_mode(entry) != held.mode:
            return True
        data = read_entry(self.root, path, entry, MAX_SIZE)
        return data is None or objects.hash_content(data) != held.name

    def _put(self, path: str, data: bytes, mode: str, entry: FileEntry | None) -> None:
        if mode == LINK:
            file_writer.write_link(self.root, path, data)
            return
        default = 0o755 if mode == PROGRAM else 0o644
        file_writer.write_file(self.root, path, data, entry.mode if entry and git_mode(entry) == mode else default)


def _stored(objects: GitObjects, part: Mapping[str, bytes], entries: Mapping[str, FileEntry]) -> dict[str, GitEntry]:
    return {path: GitEntry(git_mode(entries[path]), name) for path, name in objects.store_contents(part).items()}


def _files(held: Mapping[str, GitEntry]) -> dict[str, GitEntry]:
    return {path: one for path, one in held.items() if one.mode != MODULE and _is_storable(path)}


def git_mode(entry: FileEntry) -> str:
    """What git calls the kind of a file."""
    if entry.kind is FileKind.LINK:
        return LINK
    return PROGRAM if entry.is_executable else FILE


def _is_storable(path: str) -> bool:
    """Nothing named as git's own folder is stored, or put back from a commit that somebody made up."""
    return ".git" not in path.lower().split("/")


def _is_inside(path: str, modules: Iterable[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in modules)
