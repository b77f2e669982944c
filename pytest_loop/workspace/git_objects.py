"""The objects of a git repository: contents and commits go in and come out without an index or a checkout."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_loop.workspace.git import Git, GitError

FILE, PROGRAM, LINK, MODULE = "100644", "100755", "120000", "160000"
AT_ONCE = 32 * 1024 * 1024
MOST_AT_ONCE = 5000
# Contents are not compared with each other: that takes long, and git does it some day by itself.
_IMPORT = ("fast-import", "--quiet", "--done", "--depth=0")
_AUTHOR = "pytest-loop <pytest-loop@localhost>"


@dataclass(frozen=True)
class GitEntry:
    """What a commit holds at a path: how, under which name, and how many bytes (none of a submodule)."""

    mode: str
    name: str
    size: int = 0


@dataclass(frozen=True)
class GitObjects:
    """The objects, and the folder (`prefix`) whose paths are meant; it ends with a slash, or is the whole."""

    git: Git
    object_format: str
    prefix: str = ""

    def hash_content(self, data: bytes) -> str:
        """What git calls a content."""
        return hashlib.new(self.object_format, b"blob %d\0" % len(data) + data).hexdigest()

    def store_contents(self, part: Mapping[str, bytes]) -> dict[str, str]:
        """Add contents where they are missing; gives their names."""
        names = {path: self.hash_content(data) for path, data in part.items()}
        asked = "".join(f"{name}\n" for name in dict.fromkeys(names.values()))
        answers = self.git.run("cat-file", "--batch-check", "--buffer", data=asked.encode()).decode().splitlines()
        missing = {answer.split()[0] for answer in answers if answer.endswith(" missing")}
        new = {names[path]: data for path, data in part.items() if names[path] in missing}
        if new:
            stream = b"".join(b"blob\ndata %d\n%b\n" % (len(data), data) for data in new.values())
            self.git.run(*_IMPORT, data=stream + b"done\n")
        return names

    def write_commit(self, parent: str, title: str, put: Mapping[str, GitEntry], gone: Iterable[str] | None) -> str:
        """A commit after `parent`, if any: without what is gone (None: all that was there), and with what is put."""
        cleared = b"D " + self._quoted("") if self.prefix else b"deleteall"
        message = title.encode("utf-8", "replace")
        lines = [
            b"commit refs/heads/it",
            b"mark :1",
            f"committer {_AUTHOR} {int(time.time())} +0000".encode(),
            b"data %d" % len(message),
            message,
            *([f"from {parent}".encode()] if parent else []),
            *([cleared] if gone is None else [b"D " + self._quoted(path) for path in gone]),
            *(f"M {one.mode} {one.name} ".encode() + self._quoted(path) for path, one in put.items()),
            b"get-mark :1",
            b"done\n",
        ]
        return self.git.run(*_IMPORT, data=b"\n".join(lines)).decode().strip()

    def _quoted(self, path: str) -> bytes:
        name = os.fsencode(self.prefix + path).removesuffix(b"/")
        return b'"' + name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'

    def list_entries(self, commit: str) -> dict[str, GitEntry]:
        """What a commit holds in the folder."""
        lines = self.git.run("ls-tree", "-r", "-z", "--long", "--full-tree", commit).split(b"\0")[:-1]
        parts = (line.split(b"\t", 1) for line in lines)
        fields = {os.fsdecode(name): head.decode().split() for head, name in parts}
        return {
            path.removeprefix(self.prefix): GitEntry(mode, name, int(size) if size.isdigit() else 0)
            for path, (mode, _, name, size) in fields.items()
            if path.startswith(self.prefix)
        }

    def contents(self, wanted: Mapping[str, GitEntry]) -> Iterator[tuple[str, bytes]]:
        """The contents by their paths, a bounded part of them at a time."""
        for part in _parts(wanted):
            asked = "".join(f"{wanted[path].name}\n" for path in part).encode()
            output = memoryview(self.git.run("cat-file", "--batch", "--buffer", data=asked))
            for path in part:
                head = bytes(output[:200]).split(b"\n", 1)[0]
                if not head.startswith(f"{wanted[path].name} blob ".encode()):
                    raise GitError(f"the repository lacks the content of {path!r}")
                start, size = len(head) + 1, wanted[path].size
                yield path, bytes(output[start : start + size])
                output = output[start + size + 1 :]


def _parts(wanted: Mapping[str, GitEntry]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for path, one in wanted.items():
        part.append(path)
        size += one.size
        if size > AT_ONCE or len(part) >= MOST_AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part
