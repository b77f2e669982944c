"""The lists of a project's files that a run keeps: at its start, and one per checkpoint."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace.file_tree import FileTree


class FileListings:
    """The listings in the folder of a run, and what this process wrote or read of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start_path = folder / "files.json"
        self._written: dict[Path, tuple[str, FileTree]] = {}

    def write_start(self, tree: FileTree) -> str:
        """Write the files at the start of the run; return the hash of the listing."""
        listing_hash, written = self._written.get(self._start_path, ("", None))
        return listing_hash if written is tree else self._write(self._start_path, tree)

    def load_start(self, listing_hash: str) -> FileTree:
        """Load the files at the start of the run; raise `StateError` if the listing was changed since."""
        data = disk.read_file(self._start_path) or b""
        if hashlib.sha256(data).hexdigest() != listing_hash:
            raise StateError(
                f"{self._start_path} is not as this run wrote it: bring it back, or start anew with --loop-task"
            )
        tree = FileTree.from_json(data)
        self._written[self._start_path] = (listing_hash, tree)
        return tree

    def write_checkpoint(self, number: int, tree: FileTree, start: FileTree) -> None:
        """Write how the files of an iteration differ from those at the start."""
        self._write(self._get_checkpoint_path(number), tree, start)

    def load_checkpoint(self, number: int, start: FileTree) -> FileTree | None:
        """Return the files of an iteration, or None if they are not kept."""
        data = disk.read_file(self._get_checkpoint_path(number))
        return FileTree.from_json(data, start) if data else None

    def rewrite_changed(self) -> None:
        """Write the listings again that an agent removed or changed, for example with git clean."""
        start = self._written.get(self._start_path)
        for path, (listing_hash, tree) in list(self._written.items()):
            if disk.hash_file(path) != listing_hash:
                self._write(path, tree, start[1] if start and path != self._start_path else None)

    def delete_start(self) -> None:
        """Delete the listing of a run that does not start, and the folders that are empty without it."""
        disk.remove_file(self._start_path)
        with suppress(OSError):
            self._folder.rmdir()
            self._folder.parent.rmdir()

    def _get_checkpoint_path(self, number: int) -> Path:
        return self._folder / f"files-{number}.json"

    def _write(self, path: Path, tree: FileTree, base: FileTree | None = None) -> str:
        data = tree.to_json(base)
        disk.make_folder(path.parent)
        disk.write_atomically(path, data)
        listing_hash = hashlib.sha256(data).hexdigest()
        self._written[path] = (listing_hash, tree)
        return listing_hash
