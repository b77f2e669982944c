"""Git worktrees with a copy of the project's files, uncommitted changes included."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.file_scan import ScanScope, read_entry, scan_files
from pytest_loop.workspace.file_tree import FileChanges, FileKind, FileTree, compare_trees
from pytest_loop.workspace.git import Git, GitError
from pytest_loop.workspace.git_repository import MAX_SIZE, GitRepository
from pytest_loop.workspace.project_diff import ProjectDiff, compute_diff


@dataclass(frozen=True)
class Worktree:
    """A worktree at `path` of the repository that holds the project at `root`."""

    root: Path
    path: Path

    @cached_property
    def _repository(self) -> GitRepository:
        return GitRepository.find(self.root)

    @cached_property
    def _git(self) -> Git:
        """Git in the repository's own folder, which exists even if `root` is the worktree that is removed."""
        return replace(self._repository.git, folder=self._repository.objects.parent)

    @property
    def project(self) -> Path:
        """The project's folder in the worktree."""
        return self.path / self._repository.prefix if self._repository.prefix else self.path

    @property
    def exists(self) -> bool:
        return (self.path / ".git").exists()

    @property
    def _start_file(self) -> Path:
        """The file that holds the commit and the files at creation."""
        return self.path.with_name(f"{self.path.name}.json")

    def create(self, scope: ScanScope, branch: str = "") -> None:
        """Check out HEAD on a new branch or on none, and copy uncommitted changes over it."""
        head = self._repository.read_head()
        if not head:
            raise GitError("the git repository has no commit yet: make one first")
        branch_options = ("-b", branch) if branch else ("--detach",)
        self._git.run("worktree", "add", "--quiet", *branch_options, str(self.path), head)
        tree = scan_files(self.root, scope)
        checked_out = scan_files(self.project, ScanScope(""), tree)
        copy_changes(self.root, tree, compare_trees(checked_out, tree), self.project)
        disk.write_atomically(self._start_file, head.encode() + b"\n" + tree.to_json())

    def commit_changes(self, branch: str, title: str) -> str:
        """Commit what changed since creation onto a branch; return the commit, or an empty string without changes.

        Changes that were uncommitted at creation are committed only in files that have changed again since.
        """
        head, _, listing = (disk.read_file(self._start_file) or b"").partition(b"\n")
        start = FileTree.from_json(listing)
        tree = scan_files(self.project, ScanScope(""), start)
        changes = compare_trees(start, tree)
        if not changes.paths:
            return ""
        paths = (*changes.added, *changes.modified)
        repository = GitRepository.find(self.project)
        with repository.open_objects() as objects:
            entries = objects.store_files(self.project, {path: tree.entries[path] for path in paths})
            commit = objects.write_commit(head.decode(), title, entries, changes.removed)
        repository.set_ref(f"refs/heads/{branch}", commit)
        return commit

    def remove(self, branch: str = "") -> None:
        """Remove the worktree, and the given branch."""
        with suppress(GitError):  # it may be gone already
            self._git.run("worktree", "remove", "--force", str(self.path))
        self._git.run("worktree", "prune")
        disk.remove_file(self._start_file)
        if branch:
            self._git.run("update-ref", "-d", f"refs/heads/{branch}")


def compute_folder_diff(root: Path, before: FileTree, folder: Path, after: FileTree) -> ProjectDiff:
    """Compute what changed in a folder that started as a copy of another."""
    return compute_diff(
        before,
        after,
        lambda path: read_entry(root, path, before.entries[path], MAX_SIZE),
        lambda path: read_entry(folder, path, after.entries[path], MAX_SIZE),
    )


def copy_changes(source: Path, tree: FileTree, changes: FileChanges, target: Path) -> None:
    """Apply changes to the files of a folder, with the contents of `tree` in the source folder."""
    for path in changes.removed:
        file_writer.remove_path(target, path)
    for path in (*changes.added, *changes.modified):
        entry = tree.entries[path]
        data = read_entry(source, path, entry, sys.maxsize)
        if data is not None and entry.kind in (FileKind.FILE, FileKind.LINK):
            file_writer.write_entry(target, path, entry, data)
