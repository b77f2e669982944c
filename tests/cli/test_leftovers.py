"""A new run does not take the edits of a killed run, or of one whose result cannot count, as its baseline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.cli.leftovers import describe_uncommitted, refuse_leftovers
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.evaluation import Evaluation, SealFinding
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Status, Target
from pytest_loop.errors import StateError
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.sealed_files import SealedFiles

MakeRun = Callable[..., RunFiles]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def make_earlier_run(tmp_path: Path, store: Store) -> MakeRun:
    """A function that saves a run of a shop with one test, whose last evaluation had findings of these kinds."""

    def make(status: Status, *kinds: str, is_killed: bool = False) -> RunFiles:
        (tmp_path / "shop.py").write_text("bad\n")
        (tmp_path / "test_shop.py").write_text("strict\n")
        files = store.get_run("fix-it")
        project = SealedFiles(tmp_path, files.folder, ["test_*.py"])
        findings = tuple(SealFinding(kind=kind) for kind in kinds)
        state = RunState(run_id="1", task_alias="fix-it", task=Task(prompt="fix"), created_at="2026-01-01T00:00:00Z")
        state = RUN_MACHINE.begin(state.replace(target=Target.WORKSPACE, seal=project.record_seal()))
        evaluation = Evaluation(score=1, passed=True, void=bool(kinds), findings=findings)
        state = state.replace(status=status, evaluation=evaluation)
        (tmp_path / "shop.py").write_text("edited\n")
        project.accept_current()
        project.save_checkpoint(1)
        project.close()
        files.acquire()
        files.append([Event.create(state, RunStarted(state=state), state.created_at)], state)
        files.release()
        if is_killed:
            (files.folder / ".lock").write_text("{}")
        return files

    return make


def refuse(store: Store) -> list[str]:
    lines: list[str] = []
    refuse_leftovers(store, store.project, lines.append)
    return lines


def test_killed_run_that_left_an_edited_test_is_named_with_what_to_do(
    store: Store, make_earlier_run: MakeRun, tmp_path: Path
) -> None:
    make_earlier_run(Status.RUNNING, is_killed=True)
    assert refuse(store) == [], "an edit of the product alone is no reason"
    (tmp_path / "test_shop.py").write_text("weak\n")
    with pytest.raises(StateError) as error:
        refuse(store)
    assert str(error.value) == (
        "the run 'fix-it' was killed, and test_shop.py changed since it began: pytest-loop stop --run fix-it puts sealed "
        "files back, pytest-loop restore 0 --run fix-it all files; pytest-loop clean fix-it forgets the run and keeps the "
        "files"
    )


def test_killed_run_that_left_suspicious_code_is_named(store: Store, make_earlier_run: MakeRun, tmp_path: Path) -> None:
    make_earlier_run(Status.RUNNING, is_killed=True)
    (tmp_path / "shop.py").write_text("import pytest\npytest.skip()\n")
    with pytest.raises(StateError, match=r"was killed, and shop\.py changed"):
        refuse(store)


def test_paused_run_has_put_its_files_back_so_that_edits_are_those_of_the_user(
    store: Store, make_earlier_run: MakeRun, tmp_path: Path
) -> None:
    make_earlier_run(Status.RUNNING)
    (tmp_path / "test_shop.py").write_text("other\n")
    assert refuse(store) == []


@pytest.mark.parametrize(("kinds", "is_refused"), [(("machinery",), True), (("sealed", "site"), False), ((), False)])
def test_edits_of_a_result_that_cannot_count_are_refused_until_they_are_undone(
    store: Store, make_earlier_run: MakeRun, tmp_path: Path, kinds: tuple[str, ...], is_refused: bool
) -> None:
    make_earlier_run(Status.STOPPED, *kinds)
    if is_refused:
        with pytest.raises(StateError, match=r"its edits are still there \(shop\.py\): pytest-loop restore 0"):
            refuse(store)
    (tmp_path / "shop.py").write_text("bad\n" if is_refused else "edited\n")
    assert refuse(store) == []
    (tmp_path / "shop.py").write_text("of the user\n")
    assert refuse(store) == []


def test_files_that_an_interrupted_evaluation_has_set_aside_are_put_back(
    store: Store, make_earlier_run: MakeRun, tmp_path: Path
) -> None:
    files = make_earlier_run(Status.STOPPED)
    journal = {"root": str(tmp_path), "moved": ["local.py"], "written": [], "made": []}
    (files.folder / "clean-room.json").write_text(json.dumps(journal))
    (files.folder / "aside").mkdir()
    (files.folder / "aside/0").write_text("mine\n")
    assert refuse(store) == ["put back what an interrupted evaluation had set aside: local.py"]
    assert (tmp_path / "local.py").read_text() == "mine\n"


def test_run_whose_list_of_files_is_gone_cannot_be_compared(store: Store, make_earlier_run: MakeRun) -> None:
    files = make_earlier_run(Status.STOPPED, "machinery")
    (files.folder / "files.json").unlink()
    assert refuse(store) == []


def test_draft_names_sealed_files_that_differ_from_the_last_commit(tmp_path: Path) -> None:
    for name in ("test_a.py", "test_b.py", "test_c.py", "shop.py"):
        (tmp_path / name).write_text("committed\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "test_a.py").write_text("edited\n")
    (tmp_path / "test_b.py").unlink()
    (tmp_path / "test_new.py").write_text("new\n")
    (tmp_path / "shop.py").write_text("edited\n")
    project = SealedFiles(tmp_path, tmp_path / ".loop" / "run", ["test_*.py"])
    project.record_start()
    expected = "sealed      test_a.py and test_b.py differ from the last commit"
    lines = [line.replace(", ", " and ") for line in describe_uncommitted(project)]
    project.close()
    assert lines == [expected]


def test_nothing_is_compared_without_a_commit(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("")
    project = SealedFiles(tmp_path, tmp_path / ".loop" / "run", ["test_*.py"])
    project.record_start()
    assert list(describe_uncommitted(project)) == []
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert list(describe_uncommitted(project)) == []
    project.close()
