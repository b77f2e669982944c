"""The files of a project as a run knows them: opened again, and brought back to an iteration."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.evaluation import Sealed
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import StateError
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.content_archive import RestoreResult
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree
from pytest_loop.workspace.sealed_files import SealedFiles

# The baseline of an experiment is what its first iteration judged.
JUDGED = (Kind.EVALUATION_DONE.value, Kind.BASELINE_DONE.value)


def opened(root: Path, files: RunFiles, sealed: Sealed) -> SealedFiles:
    """The files of a run that another process began."""
    project = SealedFiles(root, files.folder, sealed.patterns, sealed.allow, sealed.outputs)
    project.resume(sealed.files)
    return project


def restored(project: SealedFiles, events: Iterable[Event], number: int) -> RestoreResult:
    """Make the files those that an iteration judged."""
    judged = [one for one in events if one.event in JUDGED and max(1, one.iteration) == number]
    if not judged:
        raise StateError(f"expected the number of an iteration that was judged, found {number}")
    return project.restore_checkpoint(number, str(judged[-1].payload.get("artifact_sha256", "")))


def forget_checkpoints(root: Path, state: RunState) -> None:
    """Remove what git keeps for a run; where there is no repository there is nothing."""
    if state.sealed is not None:
        checkpoints = Checkpoints(root, state.run_id)
        if not checkpoints.unavailable_reason:
            checkpoints.remove_all()


def forget_worktree(root: Path, files: RunFiles) -> None:
    """Take away the work tree of a run; its branch was handed over, and stays."""
    if files.worktree.exists():
        with suppress(GitError):
            Worktree(root, files.worktree).remove()
