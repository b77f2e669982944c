"""Runs that may edit the same files are refused, and the change in a worktree becomes a branch."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.run_state import RunState, Stop, Task
from pytest_loop.core.model.vocabulary import Status, Target
from pytest_loop.errors import StateError
from pytest_loop.run.worktree import find_shared_files, get_branch, hand_over, refuse_overlap
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.file_scan import ScanScope
from pytest_loop.workspace.git_worktree import Worktree


def make_state(alias: str, allow: tuple[str, ...] = (), **fields: Any) -> RunState:
    state = RunState(run_id=f"{alias}-1", task_alias=alias, task=Task(prompt="Fix it"))
    seal = Seal(patterns=(), allow=allow)
    return state.replace(**{"target": Target.WORKSPACE, "seal": seal, **fields})


def start_run(store: Store, state: RunState) -> RunFiles:
    files = store.get_run(state.task_alias)
    files.acquire()
    files.append([Event.create(state, RunStarted(state=state), "2026-01-02T03:04:05.678Z")], state)
    return files


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        ((), (), True),
        (("src/**",), (), True),
        (("src/a.py",), ("src/b.py",), False),
        (("/src/*.py",), ("/src/a.py",), True),
    ],
)
def test_active_runs_never_edit_the_same_files(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...], is_refused: bool
) -> None:
    store = Store(tmp_path)
    first_files = start_run(store, make_state("one", first))
    state = make_state("two", second)
    second_files = start_run(store, state)
    if is_refused:
        with pytest.raises(StateError, match="the run 'one' may edit the same files"):
            refuse_overlap(store, second_files, state)
    else:
        refuse_overlap(store, second_files, state)
    assert second_files.is_busy is not is_refused
    for files in (first_files, second_files):
        files.release()


def test_documents_in_the_folders_of_runs_never_overlap(tmp_path: Path) -> None:
    store = Store(tmp_path)
    states = [
        make_state(alias, target=Target.ARTIFACT, seal=None, artifact=f".loop/{alias}/artifact.md")
        for alias in ("one", "two")
    ]
    files = [start_run(store, state) for state in states]
    refuse_overlap(store, files[1], states[1])
    for run in files:
        run.release()


def test_files_of_other_runs_since_a_time_are_shared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    own = make_state("own", target=Target.ARTIFACT, seal=Seal(allow=("/own.md",)), artifact="own.md")
    states = [
        own,
        make_state("one", target=Target.ARTIFACT, seal=Seal(allow=("/a.md", "img/")), artifact="a.md"),
        make_state("two", target=Target.ARTIFACT, seal=None, artifact="b.md"),
        make_state("private", target=Target.ARTIFACT, seal=None, artifact=".loop/private/c.md"),
        make_state("elsewhere", ("d.py",), arguments=("--rootdir", "/elsewhere")),
    ]
    for state in states:
        start_run(store, state).release()
    (tmp_path / ".loop" / "damaged").mkdir()
    (tmp_path / ".loop" / "damaged" / "run.json").write_text("?")
    assert sorted(find_shared_files(store, own, 0).patterns) == ["/a.md", "/b.md", "img/"]
    assert find_shared_files(store, own, time.time() + 60).patterns == ()
    files = start_run(store, make_state("everything", ()))
    assert find_shared_files(store, own, time.time() + 60).patterns == ("*",)
    files.release()


def run_git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("1\n")
    for arguments in ("init --quiet", "add --all", "commit --quiet -m first"):
        run_git(tmp_path, *arguments.split())
    return tmp_path


def test_change_in_a_worktree_becomes_a_branch(repository: Path) -> None:
    store = Store(repository)
    state = make_state("one", stop=Stop(passed=True, reason="threshold_reached"), status=Status.COMPLETED)
    files = start_run(store, state)
    files.release()
    worktree = Worktree(repository, files.worktree)
    worktree.create(ScanScope(store.folder_in_project), get_branch("one"))
    (worktree.project / "a.py").write_text("2\n")
    lines: list[str] = []
    hand_over(worktree.project, files, state, lines.append)
    assert lines == ["the change is on the branch loop/one: take it with git merge loop/one"]
    assert run_git(repository, "show", "loop/one:a.py") == "2\n"
    assert not files.worktree.exists()


def test_run_in_the_project_itself_hands_over_nothing(repository: Path) -> None:
    store = Store(repository)
    state = make_state("one", stop=Stop(passed=True, reason="threshold_reached"), status=Status.COMPLETED)
    lines: list[str] = []
    hand_over(repository, store.get_run("one"), state, lines.append)
    assert lines == []
