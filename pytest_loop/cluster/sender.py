"""Send evaluations to workers: hashes and changes at first, and contents that a worker lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from pytest_loop.cluster.environment import select_files
from pytest_loop.cluster.job import (
    FencePlan,
    Job,
    Project,
    describe_environment,
    find_shadowing_distributions,
    list_modules,
)
from pytest_loop.cluster.pool import ClusterError
from pytest_loop.cluster.tree import compute_hash
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.wording import list_names
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.workspace.file_scan import read_entry, scan_files
from pytest_loop.workspace.file_tree import FileKind, FileTree, compare_trees
from pytest_loop.workspace.sealed_files import SealedFiles
from pytest_loop.workspace.session_outputs import is_written

MAX_SIZE = 1 << 30
_MAX_CHANGES = _MAX_NEW = 16_000
# Fields that stay in this process: its judge, and the results that it keeps.
_LOCAL_FIELDS: dict[str, object] = {"judge_address": "", "judge_key": "", "cached_evidence": {}, "can_reuse": False}


@dataclass
class Sender:
    """Describe evaluations by hashes, and read the contents that workers ask for.

    Changes are sent against the same `_base` until they are long: a worker may miss an evaluation.
    """

    local: SubprocessSession
    project: SealedFiles
    builds_environments: bool = False
    written: Collection[str] = ()
    _scanned: FileTree | None = field(default=None, init=False)
    _base: FileTree = field(default_factory=lambda: FileTree({}), init=False)
    _base_hash: str = field(default="", init=False)
    _texts: dict[str, bytes] = field(default_factory=dict, init=False)

    def make_job(self, order: SessionOrder) -> Job:
        """Return the job of an evaluation; raise `ClusterError` for a project that cannot be sent."""
        scanned = self._scanned = scan_files(self.project.root, self.project.scope, self.project.start, self._scanned)
        _check_files(scanned)
        files = FileTree(scanned.entries, scanned.folders)
        changes = files.to_json(self._base)
        if not self._base_hash or len(changes) > _MAX_CHANGES:
            text = files.to_json()
            self._base, self._base_hash, changes = files, compute_hash(text), files.to_json(files)
            self._texts = {self._base_hash: text}
        project = self._describe_project(files)
        self._texts = {self._base_hash: self._texts[self._base_hash], compute_hash(project): project}
        return Job(
            project=compute_hash(project),
            base=self._base_hash,
            changes=changes.decode(),
            new={digest: data.decode("latin-1") for digest, data in self._read_small_changes(files).items()},
            order=self.local.history.extend_order(order).model_copy(update=_LOCAL_FIELDS),
        )

    def _read_small_changes(self, files: FileTree) -> dict[str, bytes]:
        """Read the files that differ from the base, if they are small together."""
        changes = compare_trees(self._base, files)
        entries = [files.entries[path] for path in (*changes.added, *changes.modified)]
        is_small = sum(entry.size for entry in entries) <= _MAX_NEW
        return self.read_pieces(entry.digest for entry in entries) if is_small else {}

    def read_pieces(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Read contents by their hashes; raise `ClusterError` if a file has changed since the scan."""
        entries = self._scanned.entries if self._scanned else {}
        paths = {entry.digest: path for path, entry in entries.items()}
        contents = {}
        for digest in digests:
            data = self._texts.get(digest)
            if data is None and digest in paths:
                path = paths[digest]
                data = read_entry(self.project.root, path, entries[path], MAX_SIZE)
            data = data if data is not None else self.project.get_content(digest)
            if data is None:
                raise ClusterError(f"{paths.get(digest, digest)} changed while it was sent")
            contents[digest] = data
        return contents

    def _describe_project(self, files: FileTree) -> bytes:
        root, folder, fence = self.project.root, self.local.folder.resolve(), self.local.fence
        modules = list_modules(files.entries)
        if installed := sorted(set(find_shadowing_distributions(root, modules))):
            raise ClusterError(f"{list_names(installed, 3)} is installed, and would be judged in place of the project")
        if not folder.is_relative_to(root.resolve()):
            raise ClusterError(f"{folder} is not in the project")
        sealed = tuple(path for path in self.project.list_sealed_files() if path in files.entries)
        project = Project(
            root=str(root),
            folder=folder.relative_to(root.resolve()).as_posix(),
            sealed=sealed,
            watched=tuple(path for path in sealed if not is_written(path, self.written)),
            arguments=self.local.arguments,
            timeout=self.local.timeout,
            fence=fence and FencePlan(tool=fence.tool.value, read_only=fence.read_only, writable=fence.writable),
            environment=describe_environment(),
            modules=modules,
            requirements=self._find_requirements(),
        )
        try:
            return project.model_dump_json().encode()
        except ValueError as error:  # a name that is not UTF-8
            raise ClusterError(f"the project cannot be described: {error}") from None

    def _find_requirements(self) -> dict[str, str]:
        """Return the files of the start of the run that describe its environment: an agent must not choose it."""
        entries = self.project.start.entries
        return {path: entries[path].digest for path in select_files(entries)} if self.builds_environments else {}


def _check_files(files: FileTree) -> None:
    """Raise `ClusterError` if a file cannot be sent."""
    kinds = (FileKind.FILE, FileKind.LINK)
    if paths := [path for path, entry in files.entries.items() if entry.kind not in kinds or not entry.digest]:
        raise ClusterError(f"{list_names(paths, 3)} cannot be read")
