"""The git repository that a project lies in: what is asked of it itself, and its refs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.workspace.git import DEADLINE, Git, GitError
from pytest_loop.workspace.git_objects import MODULE, GitObjects


@dataclass(frozen=True)
class GitRepository:
    """Where the objects are, how they are named, and where in the repository the project lies (`prefix`)."""

    git: Git
    objects: Path
    object_format: str
    prefix: str

    @classmethod
    def find(cls, root: Path, deadline: float = DEADLINE) -> GitRepository:
        """The repository of a project; an error that says why where there is none with a work tree."""
        git = Git.locate(root, deadline)
        try:
            inside = git.query("rev-parse", "--is-inside-work-tree")
        except GitError as error:
            if "not a git repository" in str(error):
                raise GitError("the project is not in a git work tree") from None
            raise
        if inside != "true":
            raise GitError("the git repository of the project is bare: it has no work tree")
        common = root / git.query("rev-parse", "--git-common-dir")
        object_format = git.query("rev-parse", "--show-object-format")
        return cls(git, common.resolve() / "objects", object_format, git.query("rev-parse", "--show-prefix"))

    @contextmanager
    def open_objects(self) -> Iterator[GitObjects]:
        """Its objects, through a git folder of our own."""
        with self.git.open_private_folder(self.objects, self.object_format) as git:
            yield GitObjects(git, self.object_format, self.prefix)

    def read_head(self) -> str:
        """The commit that is checked out; empty where there is none yet."""
        try:
            return self.git.query("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitError:
            return ""

    def list_submodules(self) -> dict[str, str]:
        """The submodules of the project with their commits, as the index has them."""
        lines = self.git.run("ls-files", "--stage", "-z").split(b"\0")
        found = (line.split(b"\t", 1) for line in lines if line.startswith(MODULE.encode()))
        return {os.fsdecode(path): fields.split()[1].decode() for fields, path in found}

    def list_refs(self, folder: str) -> dict[str, str]:
        """The commits by what their refs are called in a folder of refs."""
        lines = self.git.query("for-each-ref", "--format=%(objectname) %(refname)", folder).splitlines()
        pairs = (line.split(" ", 1) for line in lines)
        return {name.removeprefix(folder): commit for commit, name in pairs}

    def set_ref(self, ref: str, commit: str) -> None:
        self.git.run("update-ref", ref, commit)

    def delete_ref(self, ref: str) -> None:
        self.git.run("update-ref", "-d", ref)
