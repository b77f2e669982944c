"""Track the files of a project while agents edit them, and restore sealed files after every edit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pytest_loop.core.judging.tampering import Source
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace.content_archive import MAX_SIZE, ContentArchive, RestoreResult
from pytest_loop.workspace.file_scan import ScanScope, read_entry, scan_files
from pytest_loop.workspace.file_tree import FileChanges, FileKind, FileTree, compare_trees
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.project_diff import ProjectDiff, compute_diff
from pytest_loop.workspace.seal import select_shadowing_files

_PYTHON_SUFFIX = ".py"


class SealedFiles:
    """The project's files at the start of a run (`start`) and now (`current`)."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        sealed: Iterable[str],
        allow: Iterable[str] = (),
        outputs: Iterable[str] = (),
    ) -> None:
        self.root = root
        self.sealed = PathPatterns(sealed)
        self._sealable = PathPatterns(("*", *self.sealed.patterns))  # every path that no pattern unseals
        self.allow = PathPatterns(allow)
        run_folder = folder.parent.relative_to(root).as_posix() if folder.is_relative_to(root) else ""
        self.scope = ScanScope(run_folder, self.sealed, outputs=frozenset(outputs))
        self._listing = folder / "files.json"
        self._archive = ContentArchive(folder / "files.kept")
        self._listings: dict[Path, tuple[str, FileTree]] = {}
        self.start = FileTree({})
        self.current = FileTree({})

    # -- start and end of a run

    def record_start(self) -> str:
        """Scan and archive all files before the first edit; return the hash of the listing."""
        self.start = self.current = scan_files(self.root, self.scope)
        self._archive.add_files(self.root, self.start, self.sealed)
        return self._write_listing(self._listing, self.start)

    def resume(self, listing_hash: str) -> None:
        """Load the start of a run in another process; raise `StateError` if the listing was changed since."""
        data = disk.read_file(self._listing) or b""
        if hashlib.sha256(data).hexdigest() != listing_hash:
            raise StateError(
                f"{self._listing} is not as this run wrote it: bring it back, or start anew with --loop-task"
            )
        self.start = FileTree.from_json(data)
        self._listings[self._listing] = (listing_hash, self.start)
        self._archive.open_existing()
        self._scan()

    def discard(self) -> None:
        """Remove the files that were written for a run that does not start."""
        self._archive.close()
        for path in (self._listing, self._archive.path):
            disk.remove_file(path)
        with suppress(OSError):
            self._listing.parent.rmdir()
            self._listing.parent.parent.rmdir()

    def close(self) -> None:
        self._archive.close()

    def _scan(self) -> None:
        self.current = scan_files(self.root, self.scope, self.start)

    def _write_listing(self, path: Path, tree: FileTree) -> str:
        """Write a list of files; return its hash."""
        data = tree.to_json()
        disk.make_folder(path.parent)
        disk.write_atomically(path, data)
        listing_hash = hashlib.sha256(data).hexdigest()
        self._listings[path] = (listing_hash, tree)
        return listing_hash

    def _rewrite_removed_files(self) -> None:
        """Write the archive and the listings again if an agent removed or changed them, for example with git clean."""
        self._archive.rewrite_if_removed()
        for path, (listing_hash, tree) in list(self._listings.items()):
            if disk.hash_file(path) != listing_hash:
                self._write_listing(path, tree)

    # -- checkpoints

    def save_checkpoint(self, number: int) -> None:
        """Save the current files as those of an iteration."""
        self._write_listing(self._get_checkpoint_path(number), self.save_current())

    def restore_checkpoint(self, number: int, digest: str) -> RestoreResult:
        """Restore the files of an iteration; `digest` is the tree's hash in its evaluation."""
        data = disk.read_file(self._get_checkpoint_path(number))
        tree = FileTree.from_json(data) if data else None
        if tree is None or tree.digest != digest:
            raise StateError(f"the files of iteration {number} are not kept in {self._listing.parent}")
        return self.restore_tree(tree)

    def _get_checkpoint_path(self, number: int) -> Path:
        return self._listing.with_name(f"files-{number}.json")

    def save_current(self) -> FileTree:
        """Archive the current files, and return them for `restore_tree`."""
        self._archive.add_files(self.root, self.current)
        return self.current

    def restore_tree(self, tree: FileTree) -> RestoreResult:
        """Restore an archived tree."""
        self._scan()
        result = self._archive.undo_changes(self.root, tree, self.current, compare_trees(tree, self.current))
        self._scan()
        return result

    def get_content(self, digest: str) -> bytes | None:
        """Return the archived content with this hash, or None if there is none."""
        return self._archive.get_content(digest)

    # -- after an edit

    def enforce_seal(self) -> list[SealFinding]:
        """Undo changes of sealed files and of files outside `allow`; return one finding for each."""
        self._rewrite_removed_files()
        self._scan()
        changes = compare_trees(self.start, self.current)
        unsealed = changes.exclude(self.sealed)
        allowed, forbidden = unsealed, FileChanges()
        if self.allow:
            allowed, forbidden = unsealed.select(self.allow), unsealed.exclude(self.allow)
        shadowing = select_shadowing_files(self.root, self.start, allowed).select(self._sealable)
        findings = [
            *self._undo(changes.select(self.sealed), "sealed"),
            *self._undo(shadowing, "sealed"),
            *self._undo(forbidden, "allow"),
        ]
        if findings:
            self._scan()
        return findings

    def _undo(self, changes: FileChanges, kind: str) -> Iterator[SealFinding]:
        result = self._archive.undo_changes(self.root, self.start, self.current, changes)
        details = dict.fromkeys(result.removed, "was new, and was removed")
        details |= dict.fromkeys(result.restored, "was changed, and was put back")
        details |= {path: f"was changed, and cannot be put back: {reason}" for path, reason in result.lost}
        for path in changes.paths:
            yield SealFinding(kind=kind, path=path, detail=details[path])

    # -- changes since the start

    @property
    def digest(self) -> str:
        """The hash of all files at the last scan."""
        return self.current.digest

    def compute_diff(self) -> ProjectDiff:
        """Compute the changes since the start of the run."""
        return compute_diff(self.start, self.current, self._read_start_content, self._read_current_content)

    def render_diff(self, before: FileTree, limit: int) -> str:
        """Render the changes since `before`, an archived tree."""

        def read_content(path: str) -> bytes | None:
            return self._archive.get_content(before.entries[path].digest)

        return compute_diff(before, self.current, read_content, self._read_current_content, limit).diff

    def list_changed_sources(self) -> list[Source]:
        """Return the Python files that were added or modified."""
        changes = compare_trees(self.start, self.current)
        paths = [path for path in (*changes.added, *changes.modified) if path.endswith(_PYTHON_SUFFIX)]
        return [
            Source(path, self._read_start_text(path) if path in self.start.entries else None, _decode(data))
            for path in paths
            if (data := self._read_current_content(path)) is not None
        ]

    def read_product_sources(self) -> Iterator[str]:
        """Read the Python files that are not sealed, as they were at the start."""
        return self._read_start_sources(is_sealed=False)

    def read_sealed_sources(self) -> Iterator[str]:
        """Read the Python files that are sealed, as they were at the start."""
        return self._read_start_sources(is_sealed=True)

    def _read_start_sources(self, *, is_sealed: bool) -> Iterator[str]:
        for path in self.start.entries:
            if path.endswith(_PYTHON_SUFFIX) and self.sealed.matches(path) is is_sealed:
                yield self._read_start_text(path)

    def _read_start_text(self, path: str) -> str:
        return _decode(self._read_start_content(path) or b"")

    def _read_start_content(self, path: str) -> bytes | None:
        return self._archive.get_content(self.start.entries[path].digest)

    def _read_current_content(self, path: str) -> bytes | None:
        entry = self.current.entries[path]
        return read_entry(self.root, path, entry, MAX_SIZE) if entry.kind in (FileKind.FILE, FileKind.LINK) else None


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
