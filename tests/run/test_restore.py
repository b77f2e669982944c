"""Saved files of a run: restore an iteration, and remove what git holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import StateError
from pytest_loop.run.restore import (
    open_project,
    put_back_sealed,
    remove_checkpoints,
    remove_worktree,
    restore_iteration,
)
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.git_worktree import Worktree
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.core.scripted_run import ScriptedRun
from tests.run.parts import make_rules


def test_files_of_an_evaluated_iteration_are_restored(project: SealedFiles) -> None:
    project.save_checkpoint(1)
    run = ScriptedRun().evaluate("a.x.y", artifact_hash="x", artifact_sha256=project.digest)
    (project.root / "shop.py").write_text("colour = 'green'\n")
    project.enforce_seal()
    assert restore_iteration(project, run.events, 1).restored == ("shop.py",)
    assert (project.root / "shop.py").read_text() == "colour = 'red'\n"
    with pytest.raises(StateError, match="there is no iteration 7 that was judged"):
        restore_iteration(project, run.events, 7)


def test_iteration_0_is_the_state_before_the_first_edit(project: SealedFiles) -> None:
    (project.root / "shop.py").write_text("colour = 'green'\n")
    (project.root / "new.py").write_text("")
    project.accept_current()
    project.save_checkpoint(1)
    run = ScriptedRun().evaluate("a.x.y", artifact_hash="x", artifact_sha256=project.digest)
    result = restore_iteration(project, run.events, 0)
    assert (result.restored, result.removed) == (("shop.py",), ("new.py",))
    assert (project.root / "shop.py").read_text() == "colour = 'red'\n"


def test_iteration_0_keeps_what_was_made_after_the_run_unless_it_would_judge(tmp_path: Path) -> None:
    project = SealedFiles(tmp_path, tmp_path / ".loop" / "guide", ["conftest.py"])
    project.record_start()
    (tmp_path / "notes.txt").write_text("mine\n")
    (tmp_path / "conftest.py").write_text("")
    assert restore_iteration(project, [], 0).removed == ("conftest.py",)
    assert (tmp_path / "notes.txt").read_text() == "mine\n"
    project.close()


def test_iteration_keeps_what_was_made_after_a_run_that_is_over(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("colour = 'red'\n")
    project = SealedFiles(tmp_path, tmp_path / ".loop" / "guide", ["conftest.py"])
    project.record_start()
    project.save_checkpoint(1)
    run = ScriptedRun().evaluate("a.x.y", artifact_hash="x", artifact_sha256=project.digest)
    (tmp_path / "shop.py").write_text("colour = 'green'\n")
    (tmp_path / "notes.txt").write_text("mine\n")
    (tmp_path / "conftest.py").write_text("")
    result = restore_iteration(project, run.events, 1, keeps_new_files=True, is_over=True)
    assert (result.restored, result.removed) == (("shop.py",), ())
    assert restore_iteration(project, run.events, 1, keeps_new_files=True).removed == ("conftest.py",)
    assert restore_iteration(project, run.events, 1).removed == ("notes.txt",)
    project.close()


def test_project_of_another_process_is_opened_only_with_its_own_listing(project: SealedFiles) -> None:
    files, state = Store(project.root).get_run("guide"), ScriptedRun().state.replace(seal=project.record_seal())
    opened_state, opened = open_project(project.root, files, state)
    assert (opened_state, opened.start.digest) == (state, project.start.digest)
    opened.close()
    with pytest.raises(StateError, match="is not as this run wrote it"):
        open_project(project.root, files, state.replace(seal=Seal(files="another")))


def test_run_of_a_document_without_a_seal_is_sealed_when_it_is_resumed(project: SealedFiles) -> None:
    """Runs of other tools have no seal, and runs of earlier versions had none."""
    rule = make_rules("a.word.blue")[0].model_copy(update={"key": "docs/guide.rules.yaml::a.word.blue"})
    before = ScriptedRun(rule).state.replace(artifact="docs/guide.md", seal=None)
    state, opened = open_project(project.root, Store(project.root).get_run("guide"), before)
    assert state.setup.seal is not None
    assert (state.setup.seal.allow, state.setup.seal.plugins) == (("/docs/guide.md",), None)
    assert opened.sealed.matches("docs/guide.rules.yaml")
    assert not opened.sealed.matches("docs/guide.md")
    opened.close()


def test_sealed_files_are_put_back_before_a_run_goes_on_or_it_is_refused(project: SealedFiles) -> None:
    files, state = Store(project.root).get_run("guide"), ScriptedRun().state.replace(inferred_rules="rules: []\n")
    seal = project.record_seal()
    files.save_rules("rules: [easy]\n")
    (project.root / "test_shop.py").write_text("")
    findings = put_back_sealed(project, files, state)
    assert [(finding.path, finding.detail) for finding in findings] == [
        ("test_shop.py", "was changed, and was put back"),
        ("inferred.rules.yaml", "was changed, and was put back"),
    ]
    assert (project.root / "test_shop.py").read_text() == "import shop\n"
    assert files.rules.read_text() == "rules: []\n"
    project.close()
    (files.folder / "files.kept").write_bytes(b"")
    (project.root / "test_shop.py").write_text("")
    again = SealedFiles(project.root, files.folder, ["test_*.py"])
    again.resume(seal.files)
    with pytest.raises(StateError, match=r"test_shop.py: changed since the run began, and the sealed content was not"):
        put_back_sealed(again, files, state)
    again.close()


def list_refs(root: Path) -> str:
    command = ["git", "for-each-ref", "refs/pytest-loop"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def test_checkpoints_in_git_are_removed(git_project: SealedFiles) -> None:
    state = ScriptedRun(target=Target.WORKSPACE).state
    Checkpoints(git_project.root, state.run_id).write(1, git_project.save_current(), "iteration 1")
    assert list_refs(git_project.root)
    remove_checkpoints(git_project.root, state)
    assert list_refs(git_project.root) == ""


def test_run_without_git_has_no_checkpoints_to_remove(tmp_path: Path) -> None:
    remove_checkpoints(tmp_path, ScriptedRun(target=Target.WORKSPACE).state)
    remove_checkpoints(tmp_path, ScriptedRun().state)


def test_worktree_of_a_run_is_removed(git_project: SealedFiles) -> None:
    files = Store(git_project.root).get_run("guide")
    remove_worktree(git_project.root, files)
    Worktree(git_project.root, files.worktree).create(git_project.scope, "loop/guide")
    remove_worktree(git_project.root, files)
    assert not files.worktree.exists()
