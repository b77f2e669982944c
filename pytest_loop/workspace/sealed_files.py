"""Track the files of a project while agents and sessions work, and undo every change that they must not make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_loop.core.judging.tampering import FORBIDDEN
from pytest_loop.core.model.evaluation import Seal, SealFinding
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.content_archive import MAX_SIZE, ContentArchive, RestoreResult
from pytest_loop.workspace.environment import hash_outer_configuration, hash_site_files
from pytest_loop.workspace.file_listings import FileListings
from pytest_loop.workspace.file_scan import ScanScope, read_entry, scan_files
from pytest_loop.workspace.file_tree import FileChanges, FileKind, FileTree, compare_trees
from pytest_loop.workspace.honest_edits import is_honest_edit
from pytest_loop.workspace.new_files import is_new_test, select_shadowing_files
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.project_diff import ProjectDiff, compute_diff

# The folder, inside that of a run, with copies of the edits that were reverted.
DISCARDED_FOLDER = "discarded"
_MAX_COPIES = 100
_COPY_MODE = 0o600
_NO_PATTERNS = PathPatterns(())


class SealedFiles:
    """The project's files at the start of a run (`start`), of the current step (`before_step`), and now (`current`).

    Sealed files stay as they were at the start of the run. With patterns in `allow`, agents may change only files that
    match; all others stay as they were at the start of the step. Edits of the user between two steps are kept, and so
    are the new files of a session (`session_outputs`). `folder` is the folder of the run, `outputs` are paths that
    sessions write and that are not watched. `module_folders` are the folders in which sessions search modules, empty if
    unknown. `find_shared` returns the files that other runs may change at the same time.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        sealed: Iterable[str],
        allow: Iterable[str] = (),
        outputs: Iterable[str] = (),
    ) -> None:
        self.root = root
        self.folder = folder
        self.allow = PathPatterns(allow)
        runs_folder = folder.parent.relative_to(root).as_posix() if folder.is_relative_to(root) else ""
        self.scope = ScanScope(runs_folder)
        self._replace_patterns(sealed, outputs)
        self._listings = FileListings(folder)
        self._archive = ContentArchive(folder / "files.kept")
        self._discarded = folder / DISCARDED_FOLDER
        self.start = self.current = self.before_step = FileTree({})
        self._sealed_paths: tuple[FileTree, PathPatterns, list[str]] | None = None
        self._is_session = False
        self.module_folders: tuple[str, ...] = ()
        self.session_outputs: set[str] = set()
        self.find_shared: Callable[[], PathPatterns] = lambda: _NO_PATTERNS

    # -- start and end of a run

    def record_start(self) -> str:
        """Scan and archive all files before the first edit; return the hash of the listing."""
        before = self.start if self.start.entries else None
        self.start = self.current = self.before_step = scan_files(self.root, self.scope, before, self.current)
        self._archive.add_files(self.root, self.start, self.sealed)
        return self._listings.write_start(self.start)

    def record_seal(self, opened: tuple[str, ...] = ()) -> Seal:
        """Record the files before the first edit, and return their seal; agents may write into `opened` paths."""
        return Seal(
            patterns=self.sealed.patterns,
            allow=self.allow.patterns,
            files=self.record_start(),
            site=hash_site_files(opened, self.root),
            outer=hash_outer_configuration(self.root),
            opened=opened,
            outputs=tuple(sorted(self.scope.outputs)),
        )

    def reseal(self, sealed: Iterable[str], allow: Iterable[str]) -> str:
        """Replace both sets of patterns, and record the current files as the start; return the hash of the listing."""
        self.allow = PathPatterns(allow)
        self._replace_patterns(sealed)
        return self.record_start()

    def extend_seal(self, patterns: Iterable[str], outputs: Iterable[str]) -> None:
        """Seal more files, and exclude outputs of sessions from scans; the caller must call `record_start` next."""
        self._replace_patterns((*patterns, *self.sealed.patterns), outputs)

    def _replace_patterns(self, patterns: Iterable[str], outputs: Iterable[str] = ()) -> None:
        self.sealed = PathPatterns(patterns)
        # Matches all paths but those that a negated pattern (`!path`) takes out of the seal.
        self._sealable = PathPatterns(("*", *self.sealed.patterns))
        self.scope = replace(self.scope, sealed=self.sealed, outputs=self.scope.outputs | set(outputs))

    def resume(self, listing_hash: str) -> None:
        """Load the start of a run in another process; raise `StateError` if the listing was changed since."""
        self.start = self._listings.load_start(listing_hash)
        self._archive.open_existing()
        self.accept_current()

    def delete_records(self) -> None:
        """Delete the listing and the archives of a run that does not start."""
        self._archive.close()
        for path in (self._archive.path, *self.folder.glob("left-out.*")):
            disk.remove_file(path)
        self._listings.delete_start()

    def close(self) -> None:
        self._archive.close()

    def _scan(self, *, read_all: bool = False) -> None:
        """Scan the files; without `read_all`, those with the size, times and inode of the last scan are not read."""
        self.current = scan_files(self.root, self.scope, self.start, None if read_all else self.current)

    # -- checkpoints

    def save_checkpoint(self, number: int) -> None:
        """Save the current files as those of an iteration."""
        self._listings.write_checkpoint(number, self.save_current(), self.start)

    def restore_checkpoint(self, number: int, digest: str) -> RestoreResult:
        """Restore the files of an iteration; `digest` is the hash of all files that its evaluation recorded."""
        return self.restore_tree(self.find_checkpoint(number, digest))

    def find_checkpoint(self, number: int, digest: str) -> FileTree:
        """Return the files of an iteration with this hash; raise `StateError` if they are not kept."""
        tree = self.load_checkpoint(number)
        if tree is None or tree.digest != digest:
            raise StateError(f"the files of iteration {number} are not kept in {self.folder}")
        return tree

    def load_checkpoint(self, number: int) -> FileTree | None:
        """Return the files of an iteration, or None if they are not kept."""
        return self._listings.load_checkpoint(number, self.start)

    def save_current(self) -> FileTree:
        """Archive the current files, and return them for `restore_tree`."""
        self._archive.add_files(self.root, self.current)
        return self.current

    def restore_tree(self, tree: FileTree) -> RestoreResult:
        """Restore an archived tree."""
        self._scan()
        result = self._archive.undo_changes(self.root, tree, self.current, compare_trees(tree, self.current))
        self.accept_current()
        return result

    def get_content(self, digest: str) -> bytes | None:
        """Return the archived content with this hash, or None if there is none."""
        return self._archive.get_content(digest)

    # -- while an agent or a session works

    def begin_work(self, *, is_session: bool = False) -> None:
        """Archive the current files if `allow` has patterns; with `is_session`, new files become session outputs."""
        self._is_session = is_session
        if self.allow:
            self._archive.add_files(self.root, self.current)

    def accept_current(self) -> None:
        """Scan the files, and accept edits that the user made between two steps, except those of sealed files."""
        self._scan()
        self.before_step = self.current

    def enforce_seal(self, *, read_all: bool = False) -> list[SealFinding]:
        """Undo changes of sealed files and of files outside `allow`; return one finding for each file.

        With `read_all`, compare contents even where size, times and inode are as in the last scan.
        """
        self._archive.rewrite_if_removed()
        self._listings.rewrite_changed()
        self._scan(read_all=read_all)
        changes = self.changes
        sealed_changes = changes.filter(self.is_sealed)
        honest = frozenset(filter(self._is_honest, sealed_changes.modified))
        findings = [
            *self._undo(self.start, sealed_changes.filter(lambda path: path not in honest), "sealed"),
            *self._undo(
                self.start, self._select_shadowing(changes.filter(lambda path: not self.is_sealed(path))), "sealed"
            ),
            *self._undo(self.before_step, self._find_forbidden(), FORBIDDEN),
        ]
        if findings:
            self._scan()
        self.before_step, self._is_session = self.current, False
        return findings

    def add_module_folders(self, folders: Iterable[str]) -> None:
        """Add folders in which a later session searched modules, unless the folders of the baseline are unknown."""
        if self.module_folders:
            self.module_folders = tuple(sorted({*self.module_folders, *folders}))

    def is_sealed(self, path: str) -> bool:
        """Return whether an agent must not change or add a file; without `allow`, agents may add new tests."""
        return self.sealed.matches(path) and (bool(self.allow) or not is_new_test(path, self.start))

    def _is_honest(self, path: str) -> bool:
        """Return whether the edits of a sealed file cannot change a verdict; False with `allow`."""
        if self.allow:
            return False
        before, after = self.read_start_content(path), self.read_current_content(path)
        is_file = self.current.entries[path].kind is self.start.entries[path].kind is FileKind.FILE
        return is_file and before is not None and after is not None and is_honest_edit(path, before, after)

    def is_unsealed(self, path: str) -> bool:
        """Return whether a file was there at the start, and may be changed."""
        return path in self.start.entries and not self.sealed.matches(path)

    def list_lost_files(self) -> tuple[str, ...]:
        """Return the sealed files that could not be put back."""
        changes = self.changes.filter(self.is_sealed)
        return tuple(path for path in changes.paths if path not in changes.modified or not self._is_honest(path))

    def _select_shadowing(self, changes: FileChanges) -> FileChanges:
        """Return new files that are imported in the place of a module, unless a pattern takes them out of the seal."""
        allowed = changes.select(self.allow) if self.allow else changes
        shadowing = select_shadowing_files(self.root, self.start, allowed, self.sealed.matches, self.module_folders)
        return shadowing.select(self._sealable)

    def _find_forbidden(self) -> FileChanges:
        """Return what an agent changed outside `allow` in this step: files from the start of the run, and new ones."""
        if not self.allow:
            return FileChanges()
        changes = compare_trees(self.before_step, self.current).exclude(self.sealed).exclude(self.allow)
        if self._is_session:
            self.session_outputs.update(changes.added)
        is_new = frozenset(changes.added).difference(self.session_outputs).__contains__
        changes = changes.filter(lambda path: path in self.start.entries or is_new(path))
        return changes.exclude(self.find_shared()) if changes.paths else changes

    def _undo(self, before: FileTree, changes: FileChanges, kind: str) -> Iterator[SealFinding]:
        self._copy_discarded((*changes.added, *changes.modified))
        result = self._archive.undo_changes(self.root, before, self.current, changes)
        details = dict.fromkeys(result.removed, "was new, and was removed")
        details |= dict.fromkeys(result.restored, "was changed, and was put back")
        details |= {path: f"was changed, and cannot be put back: {reason}" for path, reason in result.lost}
        for path in changes.paths:
            yield SealFinding(kind=kind, path=path, detail=details[path])

    def _copy_discarded(self, paths: Iterable[str]) -> None:
        """Copy files that are about to be put back: a person may have edited them while an agent worked."""
        for path in sorted(paths)[:_MAX_COPIES]:
            data = self.read_current_content(path)
            if data is not None and self.current.entries[path].kind is FileKind.FILE:
                disk.make_folder(self._discarded)
                with suppress(StateError):  # an older copy may be in the way
                    file_writer.write_file(self._discarded, path, data, _COPY_MODE)

    # -- changes since the start

    @property
    def digest(self) -> str:
        """The hash of all files at the last scan."""
        return self.current.digest

    @property
    def changes(self) -> FileChanges:
        """The files that were added, removed and modified since the start of the run."""
        return compare_trees(self.start, self.current)

    def compute_diff(self) -> ProjectDiff:
        """Compute the changes since the start of the run."""
        return compute_diff(self.start, self.current, self.read_start_content, self.read_current_content)

    def render_diff(self, before: FileTree, limit: int) -> str:
        """Render the changes since `before`, an archived tree."""

        def read_content(path: str) -> bytes | None:
            return self._archive.get_content(before.entries[path].digest)

        return compute_diff(before, self.current, read_content, self.read_current_content, limit).diff

    def list_sealed_files(self) -> list[str]:
        """Return the sealed files at the start of the run."""
        cached = self._sealed_paths
        if cached is None or cached[0] is not self.start or cached[1] is not self.sealed:
            paths = [path for path in self.start.entries if self.sealed.matches(path)]
            self._sealed_paths = cached = (self.start, self.sealed, paths)
        return cached[2]

    def read_start_content(self, path: str) -> bytes | None:
        """Return the content of a file at the start of the run, or None if it was not kept."""
        return self._archive.get_content(self.start.entries[path].digest)

    def read_current_content(self, path: str) -> bytes | None:
        """Return the content of a file or link at the last scan, or None if it has changed since."""
        entry = self.current.entries[path]
        return read_entry(self.root, path, entry, MAX_SIZE) if entry.kind in (FileKind.FILE, FileKind.LINK) else None
