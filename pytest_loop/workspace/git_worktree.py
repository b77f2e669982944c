"""Work trees of git beside the person's own: the same files, with what is not committed, for somebody else to edit."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.checkpoints import LARGEST, git_mode
from pytest_loop.workspace.file_tree import Difference, Kind, Scope, Tree, difference, look, read
from pytest_loop.workspace.git import Git, GitError
from pytest_loop.workspace.git_objects import Held
from pytest_loop.workspace.git_repository import Repository
from pytest_loop.workspace.project_diff import Change, change


@dataclass(frozen=True)
class Worktree:
    """A work tree at `path` of the repository that the project at `root` lies in, there or in that very work tree."""

    root: Path
    path: Path

    @cached_property
    def _repository(self) -> Repository:
        return Repository.around(self.root)

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

    def make(self, scope: Scope, branch: str = "") -> None:
        """Check out what is committed, on a new branch or on none, and lay what is not over it."""
        head = self._repository.head()
        if not head:
            raise GitError("the git repository has no commit yet: make one first")
        where = ("-b", branch) if branch else ("--detach",)
        self._git.run("worktree", "add", "--quiet", *where, str(self.path), head)
        there = look(self.root, scope)
        lay_over(self.root, there, self.project)
        disk.write_whole(self._began, head.encode() + b"\n" + there.dump())

    @property
    def _began(self) -> Path:
        """What it began with: the commit, and the files that lay over it."""
        return self.path.with_name(f"{self.path.name}.json")

    def keep(self, branch: str, title: str) -> str:
        """Commit what has changed since it was made onto its branch; gives the commit, empty where nothing has.

        What the person had not committed is part of it only in files that were changed further.
        """
        head, _, files = (disk.content(self._began) or b"").partition(b"\n")
        start = Tree.load(files)
        now = look(self.project, Scope(""), start)
        edited = difference(start, now)
        if not edited.paths:
            return ""
        entries = {path: now.entries[path] for path in (*edited.added, *edited.modified)}
        contents = {path: read(self.project, path, one, LARGEST) for path, one in entries.items()}
        found = Repository.around(self.project)
        with found.opened() as objects:
            stored = objects.store({path: data for path, data in contents.items() if data is not None})
            put = {path: Held(git_mode(entries[path]), name) for path, name in stored.items()}
            commit = objects.commit(head.decode(), title, put, list(edited.removed))
        found.point(f"refs/heads/{branch}", commit)
        return commit

    def remove(self, branch: str = "") -> None:
        """Take it away, and a branch that nobody needs with it."""
        with suppress(GitError):  # somebody took it away before
            self._git.run("worktree", "remove", "--force", str(self.path))
        self._git.run("worktree", "prune")
        disk.remove(self._began)
        if branch:
            self._git.run("update-ref", "-d", f"refs/heads/{branch}")


def changed(root: Path, before: Tree, folder: Path, after: Tree) -> Change:
    """What was changed in a folder that began with the files of another."""
    return change(
        before,
        after,
        lambda path: read(root, path, before.entries[path], LARGEST),
        lambda path: read(folder, path, after.entries[path], LARGEST),
    )


def lay_over(source: Path, there: Tree, target: Path) -> None:
    """Make the files of a folder those of another."""
    lay_change(source, there, difference(look(target, Scope(""), there), there), target)


def lay_change(source: Path, there: Tree, found: Difference, target: Path) -> None:
    """Make a change to the files of a folder: what is new or other in it comes from the source."""
    for path in found.removed:
        file_writer.remove(target, path)
    for path in (*found.added, *found.modified):
        entry = there.entries[path]
        data = read(source, path, entry, sys.maxsize)
        if data is None or entry.kind not in (Kind.FILE, Kind.LINK):
            continue
        if entry.kind is Kind.LINK:
            file_writer.put_link(target, path, data)
        else:
            file_writer.put_file(target, path, data, entry.mode)
