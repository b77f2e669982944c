"""Work trees of git beside the person's own: the same files, with what is not committed, for somebody else to edit."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.checkpoints import MAX_SIZE, git_mode
from pytest_loop.workspace.file_tree import (
    FileChanges,
    FileKind,
    FileTree,
    ScanScope,
    compare_trees,
    read_entry,
    scan_files,
)
from pytest_loop.workspace.git import Git, GitError
from pytest_loop.workspace.git_objects import GitEntry
from pytest_loop.workspace.git_repository import GitRepository
from pytest_loop.workspace.project_diff import ProjectDiff, compute_diff


@dataclass(frozen=True)
class Worktree:
    """A work tree at `path` of the repository that the project at `root` lies in, there or in that very work tree."""

    root: Path
    path: Path

    @cached_property
    def _repository(self) -> GitRepository:
        return GitRepository.find(self.root)

    @cached_property
    def _git(self) -> Git:
        """Git where nobody takes the folder away from under it."""
        return replace(self._repository.git, folder=self._repository.objects.parent)

    @property
    def project(self) -> Path:
        """Where the project lies in it."""
        return self.path / self._repository.prefix if self._repository.prefix else self.path

    @property
    def exists(self) -> bool:
        return (self.path / ".git").exists()

    def create(self, scope: ScanScope, branch: str = "") -> None:
        """Check out what is committed, on a new branch or on none, and lay what is not over it."""
        head = self._repository.read_head()
        if not head:
            raise GitError("the git repository has no commit yet: make one first")
        where = ("-b", branch) if branch else ("--detach",)
        self._git.run("worktree", "add", "--quiet", *where, str(self.path), head)
        there = scan_files(self.root, scope)
        copy_files(self.root, there, self.project)
        disk.write_atomically(self._began, head.encode() + b"\n" + there.to_json())

    @property
    def _began(self) -> Path:
        """What it began with: the commit, and the files that lay over it."""
        return self.path.with_name(f"{self.path.name}.json")

    def commit_changes(self, branch: str, title: str) -> str:
        """Commit what has changed since it was made onto its branch; gives the commit, empty where nothing has.

        What the person had not committed is part of it only in files that were changed further.
        """
        head, _, files = (disk.read_file(self._began) or b"").partition(b"\n")
        start = FileTree.from_json(files)
        now = scan_files(self.project, ScanScope(""), start)
        edited = compare_trees(start, now)
        if not edited.paths:
            return ""
        entries = {path: now.entries[path] for path in (*edited.added, *edited.modified)}
        contents = {path: read_entry(self.project, path, one, MAX_SIZE) for path, one in entries.items()}
        found = GitRepository.find(self.project)
        with found.open_objects() as objects:
            stored = objects.store_contents({path: data for path, data in contents.items() if data is not None})
            put = {path: GitEntry(git_mode(entries[path]), name) for path, name in stored.items()}
            commit = objects.write_commit(head.decode(), title, put, list(edited.removed))
        found.set_ref(f"refs/heads/{branch}", commit)
        return commit

    def remove(self, branch: str = "") -> None:
        """Take it away, and a branch that nobody needs with it."""
        with suppress(GitError):  # somebody took it away before
            self._git.run("worktree", "remove", "--force", str(self.path))
        self._git.run("worktree", "prune")
        disk.remove_file(self._began)
        if branch:
            self._git.run("update-ref", "-d", f"refs/heads/{branch}")


def compute_folder_diff(root: Path, before: FileTree, folder: Path, after: FileTree) -> ProjectDiff:
    """What was changed in a folder that began with the files of another."""
    return compute_diff(
        before,
        after,
        lambda path: read_entry(root, path, before.entries[path], MAX_SIZE),
        lambda path: read_entry(folder, path, after.entries[path], MAX_SIZE),
    )


def copy_files(source: Path, there: FileTree, target: Path) -> None:
    """Make the files of a folder those of another."""
    copy_changes(source, there, compare_trees(scan_files(target, ScanScope(""), there), there), target)


def copy_changes(source: Path, there: FileTree, found: FileChanges, target: Path) -> None:
    """Make a change to the files of a folder: what is new or other in it comes from the source."""
    for path in found.removed:
        file_writer.remove_path(target, path)
    for path in (*found.added, *found.modified):
        entry = there.entries[path]
        data = read_entry(source, path, entry, sys.maxsize)
        if data is None or entry.kind not in (FileKind.FILE, FileKind.LINK):
            continue
        if entry.kind is FileKind.LINK:
            file_writer.write_link(target, path, data)
        else:
            file_writer.write_file(target, path, data, entry.mode)
