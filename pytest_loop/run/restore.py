"""The saved files of a run: open them again, restore an iteration, and remove checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EvaluationDone
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.wording import list_names
from pytest_loop.errors import StateError
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace import clean_room_journal
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.content_archive import RestoreResult
from pytest_loop.workspace.file_tree import FileTree
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree
from pytest_loop.workspace.seal import build_seal_patterns, format_path_pattern
from pytest_loop.workspace.sealed_files import SealedFiles


def open_project(root: Path, files: RunFiles, state: RunState) -> tuple[RunState, SealedFiles]:
    """Return the state and the files of a run that another process began; seal a run of a tool that seals none.

    First put back files that an interrupted evaluation has set aside.
    """
    clean_room_journal.put_back(files.folder)
    seal = state.setup.seal
    if seal is not None:
        project = SealedFiles(root, files.folder, seal.patterns, seal.allow, seal.outputs)
        project.module_folders = seal.module_folders
        project.resume(seal.files)
        return state, project
    document = format_path_pattern(state.setup.artifact)
    paths = {rule.source for rule in state.criteria.rules}
    project = SealedFiles(root, files.folder, build_seal_patterns(filter(None, paths), (), (document,)), (document,))
    seal = project.record_seal().model_copy(update={"plugins": None, "start_digest": state.progress.artifact_hash})
    return state.replace(seal=seal), project


def put_back_sealed(project: SealedFiles, files: RunFiles, state: RunState) -> tuple[SealFinding, ...]:
    """Put back sealed files and inferred rules after a crash; return what had changed.

    Raise `StateError` if a file cannot be put back: the run must not go on with changed rules or tests.
    """
    findings = (*project.enforce_seal(), *restore_rules(files, state))
    if lost := project.list_lost_files():
        raise StateError(
            f"{list_names(lost, 3)}: changed since the run began, and the sealed content was not kept: bring it back, "
            "or start a new run"
        )
    return findings


def restore_rules(files: RunFiles, state: RunState) -> Iterator[SealFinding]:
    """Restore the inferred rule file as it was when the run began; yield a finding if it had changed."""
    rules = state.setup.inferred_rules
    if rules and not files.save_rules(rules):
        yield SealFinding(kind="sealed", path=files.rules.name, detail="was changed, and was put back")


def restore_iteration(
    project: SealedFiles, events: Iterable[Event], number: int, *, keeps_new_files: bool = False, is_over: bool = False
) -> RestoreResult:
    """Restore the files that an iteration judged, or for 0 those from before the first edit.

    Keep files that were made after the run for 0, and with `keeps_new_files` for any iteration; while the run is not
    over, without those in sealed places. For iteration 1 of an experiment, the baseline counts too.
    """
    events = list(events)
    tree = _find_tree(project, events, number) if number else project.start
    if keeps_new_files or not number:
        tree = _add_new_files(project, tree, {event.iteration for event in events}, is_over=is_over)
    return project.restore_tree(tree)


def _find_tree(project: SealedFiles, events: Iterable[Event], number: int) -> FileTree:
    evaluations = [
        event.payload
        for event in events
        if isinstance(event.payload, EvaluationDone) and max(1, event.iteration) == number
    ]
    if not evaluations:
        raise StateError(f"there is no iteration {number} that was judged: pytest-loop history lists them")
    return project.find_checkpoint(number, evaluations[-1].artifact_sha256)


def _add_new_files(project: SealedFiles, tree: FileTree, iterations: Iterable[int], *, is_over: bool) -> FileTree:
    """Return a tree with the files that were made after the run: no checkpoint has them.

    Unless the run is over, a new file in a sealed place does not stay, because a killed run may have left it.
    """
    project.accept_current()
    trees = filter(None, map(project.load_checkpoint, iterations))
    saved_paths = {path for checkpoint in trees for path in checkpoint.entries}
    new_entries = {
        path: entry
        for path, entry in project.current.entries.items()
        if path not in saved_paths and path not in project.start.entries and (is_over or not project.is_sealed(path))
    }
    return replace(tree, entries={**new_entries, **tree.entries})


def remove_checkpoints(root: Path, state: RunState) -> None:
    """Remove the checkpoints of a run from git, if there is a repository."""
    if state.setup.target is Target.WORKSPACE:
        checkpoints = Checkpoints(root, state.run_id)
        if not checkpoints.unavailable_reason:
            checkpoints.remove_all()


def remove_worktree(root: Path, files: RunFiles) -> None:
    """Remove the worktree of a run; its branch stays."""
    if files.worktree.exists():
        with suppress(GitError):
            Worktree(root, files.worktree).remove()
