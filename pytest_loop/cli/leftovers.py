"""Leftovers: edits of earlier runs in the files of a project, which a new run must not take as its baseline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_loop.cli.runs import SavedRun, read_run
from pytest_loop.core.judging.tampering import VOID_KINDS, find_suspicious_changes, find_test_machinery
from pytest_loop.core.text.wording import PrintLine, list_names
from pytest_loop.errors import StateError
from pytest_loop.run import restore, worktree
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.clean_room_journal import describe_put_back, put_back
from pytest_loop.workspace.file_tree import FileEntry, FileKind, compare_trees
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_repository import GitRepository, hash_content
from pytest_loop.workspace.project_changes import ProjectChanges
from pytest_loop.workspace.sealed_files import SealedFiles

# Findings of these kinds need no action: the edit was put back, or is not in the product.
_PUT_BACK_KINDS = frozenset({"sealed", "site", "plugin"})
_MAX_NAMES = 3


def refuse_leftovers(store: Store, root: Path, print_line: PrintLine) -> None:
    """Raise `StateError` if a killed run left suspicious edits, or if the latest run left edits and a void evaluation.

    First put back files that an interrupted evaluation has set aside.
    """
    idle = [files for files in store.list_runs() if not files.is_busy]
    for files in idle:
        if paths := put_back(files.folder):
            print_line(describe_put_back(paths))
    runs = [run for files in idle if isinstance(run := read_run(files), SavedRun) and run.state.setup.seal]
    runs_here = [run for run in runs if Path(worktree.find_run_root(run.state, store)) == root]
    latest = max(runs_here, key=lambda run: run.state.updated_at, default=None)
    for run in runs_here:
        is_killed = not run.state.is_over and run.files.owner is Owner.DEAD
        if is_killed or (run is latest and _is_void(run)):
            _refuse_kept_edits(run, root, is_killed=is_killed)


def _is_void(run: SavedRun) -> bool:
    evaluation = run.state.evaluation
    kinds = {finding.kind for finding in evaluation.findings} if evaluation and evaluation.void else set()
    return bool(kinds & VOID_KINDS - _PUT_BACK_KINDS)


def _refuse_kept_edits(run: SavedRun, root: Path, *, is_killed: bool) -> None:
    """Raise `StateError` if a killed run left suspicious edits in the project's files, or another run any edits."""
    try:
        _, project = restore.open_project(root, run.files, run.state)
    except StateError:  # the run's files are gone: there is nothing to compare
        return
    try:
        paths = list(_list_suspicious(project, run) if is_killed else _list_kept_edits(project, run))
    finally:
        project.close()
    if not paths:
        return
    alias, names = run.files.alias, list_names(paths, _MAX_NAMES)
    if is_killed:
        problem = f"the run {alias!r} was killed, and {names} changed since it began"
        undo = f"pytest-loop stop --run {alias} puts sealed files back, pytest-loop restore 0 --run {alias} all files"
    else:
        problem = f"the last result of the run {alias!r} cannot count, and its edits are still there ({names})"
        undo = f"pytest-loop restore 0 --run {alias} undoes them"
    raise StateError(f"{problem}: {undo}; pytest-loop clean {alias} forgets the run and keeps the files")


def _list_suspicious(project: SealedFiles, run: SavedRun) -> Iterator[str]:
    """Yield sealed files that changed, and source files with edits that an honest change would not make."""
    yield from project.list_lost_files()
    machinery = frozenset(
        name
        for text in ProjectChanges(project).read_start_sources(is_sealed=False)
        for name in find_test_machinery(text)
    )
    is_linted = not run.state.criteria.has_tests_only
    changes = find_suspicious_changes(ProjectChanges(project).list_sources(), machinery, is_linted=is_linted)
    yield from dict.fromkeys(finding.path for finding in changes)


def _list_kept_edits(project: SealedFiles, run: SavedRun) -> Iterator[str]:
    """Yield files that changed since the run began, and not since the last evaluation."""
    judged = project.load_checkpoint(run.state.iteration)
    for path in compare_trees(project.start, project.current).paths:
        if judged and judged.entries.get(path) == project.current.entries.get(path):
            yield path


def describe_uncommitted(project: SealedFiles) -> Iterator[str]:
    """Say which sealed files differ from the last commit: a new run takes them as they are."""
    if paths := _list_uncommitted(project):
        verb = "differs" if len(paths) == 1 else "differ"
        yield f"sealed      {list_names(paths, _MAX_NAMES)} {verb} from the last commit"


def _list_uncommitted(project: SealedFiles) -> list[str]:
    """Return the sealed files of the last commit that are gone or have another content."""
    try:
        repository = GitRepository.find(project.root)
        head = repository.read_head()
        committed = repository.list_contents(head) if head else {}
    except GitError:
        return []
    entries = project.start.entries
    return [
        path
        for path, name in committed.items()
        if project.sealed.matches(path) and _differs(project, entries.get(path), name, repository.object_format)
    ]


def _differs(project: SealedFiles, entry: FileEntry | None, name: str, object_format: str) -> bool:
    """Return whether a file is gone, or its content differs from git's object of this name."""
    if entry is None:
        return True
    data = project.get_content(entry.digest) if entry.kind is FileKind.FILE else None
    return data is not None and hash_content(data, object_format) != name
