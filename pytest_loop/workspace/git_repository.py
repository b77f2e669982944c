"""The git repository of a project: its refs, and its objects without index or checkout."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from pytest_loop.workspace.file_scan import read_entry
from pytest_loop.workspace.file_tree import FileEntry, FileKind
from pytest_loop.workspace.git import TIMEOUT, Git, GitError

MAX_SIZE = 16 * 1024 * 1024
BATCH_BYTES = 32 * 1024 * 1024
BATCH_FILES = 5000
_FILE, _PROGRAM, _LINK, _SUBMODULE = "100644", "100755", "120000", "160000"
# Delta compression takes long, and git does it by itself later.
_IMPORT = ("fast-import", "--quiet", "--done", "--depth=0")
_AUTHOR = "pytest-loop <pytest-loop@localhost>"


@dataclass(frozen=True)
class GitEntry:
    """The mode and the object name that a commit holds at a path."""

    mode: str
    name: str


@dataclass(frozen=True)
class GitRepository:
    """The objects of a repository, how they are named, and the folder of the project in it (`prefix`)."""

    git: Git
    objects: Path
    object_format: str
    prefix: str

    @classmethod
    def find(cls, root: Path, timeout: float = TIMEOUT) -> GitRepository:
        """Find the repository of a project; raise `GitError` with the reason if there is none with a worktree."""
        git = Git.locate(root, timeout)
        try:
            is_inside = git.query("rev-parse", "--is-inside-work-tree")
        except GitError as error:
            if "not a git repository" in str(error):
                raise GitError("the project is not in a git work tree") from None
            raise
        if is_inside != "true":
            raise GitError("the git repository of the project is bare: it has no work tree")
        common = root / git.query("rev-parse", "--git-common-dir")
        object_format = git.query("rev-parse", "--show-object-format")
        return cls(git, common.resolve() / "objects", object_format, git.query("rev-parse", "--show-prefix"))

    @contextmanager
    def open_objects(self) -> Iterator[GitObjects]:
        """Open the objects through a private git folder."""
        with self.git.open_private_folder(self.objects, self.object_format) as git:
            yield GitObjects(git, self.object_format, self.prefix)

    def read_head(self) -> str:
        """Return the commit that is checked out, or an empty string if there is none yet."""
        try:
            return self.git.query("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitError:
            return ""

    def list_contents(self, commit: str) -> dict[str, str]:
        """Return the object names of the project's files in a commit, by path."""
        lines = self.git.run("ls-tree", "-r", "-z", commit).split(b"\0")
        pairs = (line.split(b"\t", 1) for line in lines if line)
        return {os.fsdecode(path): fields.split()[2].decode() for fields, path in pairs}

    def list_submodules(self) -> dict[str, GitEntry]:
        """Return the submodules of the project in the index."""
        lines = self.git.run("ls-files", "--stage", "-z").split(b"\0")
        return _parse_submodules(lines, name_field=1)

    def list_refs(self, folder: str) -> dict[str, str]:
        """Return the commits of all refs in a folder, by the part of the ref's name after the folder."""
        lines = self.git.query("for-each-ref", "--format=%(objectname) %(refname)", folder).splitlines()
        pairs = (line.split(" ", 1) for line in lines)
        return {name.removeprefix(folder): commit for commit, name in pairs}

    def set_ref(self, ref: str, commit: str) -> None:
        self.git.run("update-ref", ref, commit)

    def delete_ref(self, ref: str) -> None:
        self.git.run("update-ref", "-d", ref)


@dataclass(frozen=True)
class GitObjects:
    """The objects of a repository; paths are relative to `prefix`, which is empty or ends with a slash."""

    git: Git
    object_format: str
    prefix: str = ""

    def store_files(self, root: Path, entries: Mapping[str, FileEntry]) -> dict[str, GitEntry]:
        """Add the contents of files, except files that are too large or differ from their entries."""
        stored: dict[str, GitEntry] = {}
        for batch in _read_batches(root, entries):
            names = {path: self._hash_content(data) for path, data in batch.items()}
            self._import_missing({names[path]: data for path, data in batch.items()})
            stored |= {path: GitEntry(_get_mode(entries[path]), name) for path, name in names.items()}
        return stored

    def _hash_content(self, data: bytes) -> str:
        return hash_content(data, self.object_format)

    def _import_missing(self, contents: Mapping[str, bytes]) -> None:
        names = "".join(f"{name}\n" for name in contents)
        answers = self.git.run("cat-file", "--batch-check", "--buffer", data=names.encode()).decode().splitlines()
        missing = [contents[answer.split()[0]] for answer in answers if answer.endswith(" missing")]
        if missing:
            stream = b"".join(b"blob\ndata %d\n%b\n" % (len(data), data) for data in missing)
            self.git.run(*_IMPORT, data=stream + b"done\n")

    def write_commit(
        self, parent: str, title: str, entries: Mapping[str, GitEntry], removed: Iterable[str] | None
    ) -> str:
        """Write a commit: the files of `parent` without `removed` (None removes all of them), and `entries`."""
        remove_all = b"D " + self._quote("") if self.prefix else b"deleteall"
        message = title.encode("utf-8", "replace")
        start = [
            b"commit refs/heads/it",
            b"mark :1",
            f"committer {_AUTHOR} {int(time.time())} +0000".encode(),
            b"data %d" % len(message),
            message,
            *([f"from {parent}".encode()] if parent else []),
            *([remove_all] if removed is None else [b"D " + self._quote(path) for path in removed]),
        ]
        stream = BytesIO(b"\n".join(start))  # a list of all lines would take twice the memory
        stream.seek(0, os.SEEK_END)
        stream.writelines(
            f"\nM {entry.mode} {entry.name} ".encode() + self._quote(path) for path, entry in entries.items()
        )
        stream.write(b"\nget-mark :1\ndone\n")
        return self.git.run(*_IMPORT, data=stream.getvalue()).decode().strip()

    def _quote(self, path: str) -> bytes:
        name = os.fsencode(self.prefix + path).removesuffix(b"/")
        return b'"' + name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'

    def list_submodules(self, commit: str) -> dict[str, GitEntry]:
        """Return the submodules that a commit holds in the project."""
        lines = self.git.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        submodules = _parse_submodules(lines, name_field=2)
        return {
            path.removeprefix(self.prefix): entry for path, entry in submodules.items() if path.startswith(self.prefix)
        }


def hash_content(data: bytes, object_format: str) -> str:
    """Return the name that git gives to a file's content."""
    return hashlib.new(object_format, b"blob %d\0" % len(data) + data).hexdigest()


def _parse_submodules(lines: Iterable[bytes], name_field: int) -> dict[str, GitEntry]:
    pairs = (line.split(b"\t", 1) for line in lines if line.startswith(_SUBMODULE.encode()))
    return {os.fsdecode(path): GitEntry(_SUBMODULE, fields.split()[name_field].decode()) for fields, path in pairs}


def _read_batches(root: Path, entries: Mapping[str, FileEntry]) -> Iterator[dict[str, bytes]]:
    batch: dict[str, bytes] = {}
    size = 0
    for path, entry in entries.items():
        data = read_entry(root, path, entry, MAX_SIZE)
        if data is None:
            continue
        batch[path] = data
        size += len(data)
        if size > BATCH_BYTES or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch


def _get_mode(entry: FileEntry) -> str:
    if entry.kind is FileKind.LINK:
        return _LINK
    return _PROGRAM if entry.is_executable else _FILE
