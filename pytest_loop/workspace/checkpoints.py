"""Checkpoints as commits on private refs; index, branch, HEAD, stash and configuration stay untouched."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.workspace.file_tree import FileTree, compare_trees
from pytest_loop.workspace.git import TIMEOUT, GitError
from pytest_loop.workspace.git_repository import GitEntry, GitObjects, GitRepository

_RUN_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])(?!lock$))*")
_BEFORE_FIRST = -1


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, root: Path, run_id: str, timeout: float = TIMEOUT) -> None:
        if not _RUN_ID.fullmatch(run_id):
            raise StateError(f"expected letters, digits, dots, hyphens and underscores for a run, found {run_id!r}")
        self.root = root
        self.refs = f"refs/pytest-loop/{run_id}/"
        self._timeout = timeout
        self._last_number = _BEFORE_FIRST
        self._last_commit = ""
        self._last_tree = FileTree({})
        self._submodules: dict[str, GitEntry] | None = None

    @cached_property
    def unavailable_reason(self) -> str:
        """The reason why no checkpoints can be written, or an empty string if they can."""
        try:
            self._repository  # noqa: B018 - computed on first access
        except GitError as error:
            return str(error)
        return ""

    @cached_property
    def _repository(self) -> GitRepository:
        return GitRepository.find(self.root, self._timeout)

    def list_all(self) -> dict[int, str]:
        """Return the commits of the run by the number of their iteration, in order."""
        refs = self._repository.list_refs(self.refs).items()
        return dict(sorted((int(name), commit) for name, commit in refs if name.isascii() and name.isdigit()))

    def write(self, number: int, tree: FileTree, title: str = "") -> str:
        """Write the files of a tree as a commit after those with smaller numbers; return the commit."""
        commits = {_BEFORE_FIRST: ""} | self.list_all()
        commits[self._last_number] = self._last_commit  # the ref of the commit may have been deleted
        parent = commits[max(other for other in commits if other < number)]
        ref = f"{self.refs}{number}"
        commit = self._write_commit(parent, tree, title or ref)
        self._repository.set_ref(ref, commit)
        self._last_number, self._last_commit, self._last_tree = number, commit, tree
        return commit

    def remove_all(self) -> None:
        """Delete the refs of all checkpoints of the run; git collects the objects later."""
        for name in self._repository.list_refs(self.refs):
            self._repository.delete_ref(self.refs + name)
        self._last_number, self._last_commit = _BEFORE_FIRST, ""

    def _write_commit(self, parent: str, tree: FileTree, title: str) -> str:
        is_incremental = parent != "" and parent == self._last_commit
        changes = compare_trees(self._last_tree if is_incremental else FileTree({}), tree)
        with self._repository.open_objects() as objects:
            submodules = self._find_submodules(objects, parent)
            paths = [path for path in (*changes.added, *changes.modified) if _is_storable(path, submodules)]
            entries = objects.store_files(self.root, {path: tree.entries[path] for path in paths})
            gone = [path for path in (*changes.removed, *changes.modified) if path not in entries]
            entries |= submodules
            head = parent or self._repository.read_head()
            return objects.write_commit(head, title, entries, gone if is_incremental else None)

    def _find_submodules(self, objects: GitObjects, parent: str) -> dict[str, GitEntry]:
        """Return the submodules, which stay as they were at the first checkpoint."""
        if self._submodules is None:
            self._submodules = objects.list_submodules(parent) if parent else self._repository.list_submodules()
        return self._submodules


def _is_storable(path: str, submodules: Iterable[str]) -> bool:
    """Return whether a path is outside of submodules and of folders named like git's own."""
    is_in_submodule = any(path == folder or path.startswith(f"{folder}/") for folder in submodules)
    return not is_in_submodule and ".git" not in path.lower().split("/")
