"""The saved files of a run: open them again, restore an iteration, and remove checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EvaluationDone
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.run_state import RunState
from pytest_loop.errors import StateError
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.content_archive import RestoreResult
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree
from pytest_loop.workspace.sealed_files import SealedFiles


def open_project(root: Path, files: RunFiles, seal: Seal) -> SealedFiles:
    """Return the files of a run that another process began."""
    project = SealedFiles(root, files.folder, seal.patterns, seal.allow, seal.outputs)
    project.resume(seal.files)
    return project


def restore_iteration(project: SealedFiles, events: Iterable[Event], number: int) -> RestoreResult:
    """Restore the files that an iteration judged; the baseline of an experiment belongs to its first iteration."""
    evaluations = [
        event.payload
        for event in events
        if isinstance(event.payload, EvaluationDone) and max(1, event.iteration) == number
    ]
    if not evaluations:
        raise StateError(f"expected the number of an iteration that was judged, found {number}")
    return project.restore_checkpoint(number, evaluations[-1].artifact_sha256)


def remove_checkpoints(root: Path, state: RunState) -> None:
    """Remove the checkpoints of a run from git, if there is a repository."""
    if state.setup.seal is not None:
        checkpoints = Checkpoints(root, state.run_id)
        if not checkpoints.unavailable_reason:
            checkpoints.remove_all()


def remove_worktree(root: Path, files: RunFiles) -> None:
    """Remove the worktree of a run; its branch stays."""
    if files.worktree.exists():
        with suppress(GitError):
            Worktree(root, files.worktree).remove()
