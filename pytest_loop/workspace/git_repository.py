"""The git repository that a project lies in: what is asked of it itself, and its refs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.workspace.git import DEADLINE, Git, GitError
from pytest_loop.workspace.git_objects import MODULE, Objects


@dataclass(frozen=True)
class Repository:
    """Where the objects are, how they are named, and where in the repository the project lies (`prefix`)."""

    git: Git
    objects: Path
    object_format: str
    prefix: str

    @classmethod
    def around(cls, root: Path, deadline: float = DEADLINE) -> Repository:
        """The repository of a project; an error that says why where there is none with a work tree."""
        git = Git.found(root, deadline)
        try:
            inside = git.said("rev-parse", "--is-inside-work-tree")
        except GitError as error:
            if "not a git repository" in str(error):
                raise GitError("the project is not in a git work tree") from None
            raise
        if inside != "true":
            raise GitError("the git repository of the project is bare: it has no work tree")
        common = root / git.said("rev-parse", "--git-common-dir")
        object_format = git.said("rev-parse", "--show-object-format")
        return cls(git, common.resolve() / "objects", object_format, git.said("rev-parse", "--show-prefix"))

    @contextmanager
    def opened(self) -> Iterator[Objects]:
        """Its objects, through a git folder of our own."""
        with self.git.apart(self.objects, self.object_format) as git:
            yield Objects(git, self.object_format, self.prefix)

    def head(self) -> str:
        """The commit that is checked out; empty where there is none yet."""
        try:
            return self.git.said("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitError:
            return ""

    def modules(self) -> dict[str, str]:
        """The submodules of the project with their commits, as the index has them."""
        lines = self.git.run("ls-files", "--stage", "-z").split(b"\0")
        found = (line.split(b"\t", 1) for line in lines if line.startswith(MODULE.encode()))
        return {os.fsdecode(path): fields.split()[1].decode() for fields, path in found}

    def refs(self, folder: str) -> dict[str, str]:
        """The commits by what their refs are called in a folder of refs."""
        lines = self.git.said("for-each-ref", "--format=%(objectname) %(refname)", folder).splitlines()
        pairs = (line.split(" ", 1) for line in lines)
        return {name.removeprefix(folder): commit for commit, name in pairs}

    def point(self, ref: str, commit: str) -> None:
        self.git.run("update-ref", ref, commit)

    def forget(self, ref: str) -> None:
        self.git.run("update-ref", "-d", ref)
