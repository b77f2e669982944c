"""Saved files of a run: restore an iteration, and remove what git holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_loop.core.model.evaluation import Seal
from pytest_loop.errors import StateError
from pytest_loop.run.restore import open_project, remove_checkpoints, remove_worktree, restore_iteration
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.git_worktree import Worktree
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.core.scripted_run import ScriptedRun


def test_files_of_an_evaluated_iteration_are_restored(project: SealedFiles) -> None:
    project.save_checkpoint(1)
    run = ScriptedRun().evaluate("a.x.y", artifact_hash="x", artifact_sha256=project.digest)
    (project.root / "shop.py").write_text("colour = 'green'\n")
    project.enforce_seal()
    assert restore_iteration(project, run.events, 1).restored == ("shop.py",)
    assert (project.root / "shop.py").read_text() == "colour = 'red'\n"
    with pytest.raises(StateError, match="expected the number of an iteration that was judged, found 7"):
        restore_iteration(project, run.events, 7)


def test_project_of_another_process_is_opened_only_with_its_own_listing(project: SealedFiles) -> None:
    listing = project.record_start()
    files = Store(project.root).get_run("guide")
    opened = open_project(project.root, files, Seal(patterns=("test_*.py",), files=listing))
    assert opened.start.digest == project.start.digest
    opened.close()
    with pytest.raises(StateError, match="is not as this run wrote it"):
        open_project(project.root, files, Seal(files="another"))


def list_refs(root: Path) -> str:
    command = ["git", "for-each-ref", "refs/pytest-loop"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def test_checkpoints_in_git_are_removed(git_project: SealedFiles) -> None:
    state = ScriptedRun(seal=Seal()).state
    Checkpoints(git_project.root, state.run_id).write(1, git_project.save_current(), "iteration 1")
    assert list_refs(git_project.root)
    remove_checkpoints(git_project.root, state)
    assert list_refs(git_project.root) == ""


def test_run_without_git_has_no_checkpoints_to_remove(tmp_path: Path) -> None:
    remove_checkpoints(tmp_path, ScriptedRun(seal=Seal()).state)
    remove_checkpoints(tmp_path, ScriptedRun().state)


def test_worktree_of_a_run_is_removed(git_project: SealedFiles) -> None:
    files = Store(git_project.root).get_run("guide")
    remove_worktree(git_project.root, files)
    Worktree(git_project.root, files.worktree).create(git_project.scope, "loop/guide")
    remove_worktree(git_project.root, files)
    assert not files.worktree.exists()
