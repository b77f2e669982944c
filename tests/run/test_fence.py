"""The fence of a run: what is read-only for whom, and what the user is told."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.rules import Proof
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.processes.fence import FenceTool, Mount, probe_tools
from pytest_loop.run.fence import RunFence, choose_tool, plan_fence, resolve_writable_paths
from pytest_loop.settings.options import WorkspaceSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.fences import needs_fence
from tests.run.parts import make_rules

BUBBLEWRAP = FenceTool.BUBBLEWRAP


@pytest.fixture(autouse=True)
def without_a_signing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no-state"))


def make_settings(root: Path, **values: Any) -> Settings:
    return make_default_settings(root, workspace=WorkspaceSettings(**values))


def make_state(**fields: Any) -> RunState:
    return RunState(run_id="shop-1", task_alias="shop", task=Task(prompt="fix"), **fields)


def list_mounts(fence: RunFence, workspace: Path, **fields: Any) -> list[Mount]:
    built = fence.build(workspace, **fields)
    return built.mounts if built else []


def test_without_a_tool_there_is_no_fence(tmp_path: Path) -> None:
    assert RunFence(None, "it is forbidden", ("tests/",)).build(tmp_path) is None


def test_sealed_files_state_and_environment_are_read_only(tmp_path: Path) -> None:
    fence = RunFence(BUBBLEWRAP, sealed=("tests/", "conftest.py"), fixed=("/env",), runs_folder=f"{tmp_path}/.loop")
    names = [f"{tmp_path}/{name}" for name in (".loop", "conftest.py", "tests")]
    assert list_mounts(fence, tmp_path) == [Mount(path, "ro") for path in ("/env", *names)]
    open_state = [Mount(path, "ro") for path in ("/env", *names[1:])]
    assert list_mounts(fence, tmp_path, is_state_open=True) == open_state


def test_a_workspace_inside_of_the_state_is_writable_but_for_its_sealed_files(tmp_path: Path) -> None:
    candidate = tmp_path / ".loop" / "shop" / "candidate-1"
    fence = RunFence(BUBBLEWRAP, sealed=("tests/",), runs_folder=f"{tmp_path}/.loop")
    assert list_mounts(fence, candidate) == [
        Mount(f"{tmp_path}/.loop", "ro"),
        Mount(str(candidate), "rw"),
        Mount(f"{candidate}/tests", "ro"),
    ]


@pytest.mark.parametrize(
    ("opened", "expected"),
    [
        ("/env", []),
        ("/", []),
        ("/env/lib/packages", [Mount("/env", "ro"), Mount("/env/lib/packages", "rw")]),
        ("/other", [Mount("/env", "ro")]),
    ],
)
def test_opened_paths_stay_writable(tmp_path: Path, opened: str, expected: list[Mount]) -> None:
    fence = RunFence(BUBBLEWRAP, fixed=("/env", "/env/lib"), opened=(opened,))
    assert list_mounts(fence, tmp_path) == expected


def test_caches_in_sealed_folders_stay_writable(tmp_path: Path) -> None:
    (tmp_path / "tests" / ".pytest_cache").mkdir(parents=True)
    fence = RunFence(BUBBLEWRAP, sealed=("tests/",))
    mounts = [Mount(f"{tmp_path}/tests", "ro"), Mount(f"{tmp_path}/tests/.pytest_cache", "rw")]
    assert list_mounts(fence, tmp_path) == mounts


def test_landlock_protects_folders_outside_of_project_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = os.path.realpath(sysconfig.get_path("stdlib"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    inside = [str(tmp_path / "home" / "env"), str(tmp_path / "project" / ".venv")]
    for name in inside:
        Path(name).mkdir(parents=True)
    fixed = (library, os.path.realpath(sys.executable), "/", *inside)
    fence = RunFence(FenceTool.LANDLOCK, sealed=("tests/",), fixed=fixed)
    built = fence.build(tmp_path / "project")
    assert built is not None
    assert built.read_only == (library,)


MESSAGES = [
    (RunFence(), "", ""),
    (RunFence(BUBBLEWRAP, sealed=("a", "b/")), "", "bubblewrap: 2 sealed files or folders are read-only"),
    (
        RunFence(FenceTool.UNSHARE, sealed=("a",), unfenced_count=7),
        "",
        "unshare: 1 sealed files or folders are read-only, 7 more sealed files are only detected",
    ),
    (
        RunFence(None, "bwrap is not installed"),
        "not fenced: bwrap is not installed; edits of sealed files are only detected, not prevented",
        "",
    ),
    (
        RunFence(FenceTool.LANDLOCK),
        (
            "partly fenced: Landlock protects only what lies outside of the project, your home and the temporary folder; "
            "edits of sealed files are only detected, not prevented"
        ),
        "",
    ),
]


@pytest.mark.parametrize(("fence", "warning", "details"), MESSAGES)
def test_messages(fence: RunFence, warning: str, details: str) -> None:
    assert (fence.warning, fence.details) == (warning, details)
    assert list(fence.render_draft(is_verbose=False)) == ([warning] if warning else [])
    text = warning or details
    assert list(fence.render_draft(is_verbose=True)) == ([warning or f"fence: {details}"] if text else [])
    assert bool(fence.sealing_tool) == bool(details)


def test_no_fence_is_looked_for_if_it_is_off(project: SealedFiles, tmp_path: Path) -> None:
    assert choose_tool(make_settings(tmp_path, fence="off")) == (None, "")
    fence = plan_fence(make_settings(tmp_path, fence="off"), tmp_path, project, make_state())
    assert (fence.tool, fence.warning) == (None, "")


@needs_fence
def test_fence_that_works_satisfies_on_and_auto(tmp_path: Path) -> None:
    for mode in ("on", "auto"):
        assert choose_tool(make_settings(tmp_path, fence=mode)) == probe_tools()


def test_opened_path_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "env").mkdir()
    expected = os.path.realpath(tmp_path / "env")
    assert resolve_writable_paths(make_settings(tmp_path, fence_allow=("env", "~/env"))) == (expected, expected)
    message = "--loop-fence-allow: expected an existing file or folder, found 'no-env'"
    with pytest.raises(pytest.UsageError, match=message):
        resolve_writable_paths(make_settings(tmp_path, fence_allow=("no-env",)))


@needs_fence
def test_plan_knows_sealed_files_writes_and_opened_paths(project: SealedFiles, tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    seal = Seal(written=("/outside/", "shop.py"), opened=("/opened",))
    settings = make_settings(project.root, fence_allow=("env",))
    fence = plan_fence(settings, tmp_path / ".loop", project, make_state().replace(seal=seal))
    assert fence.sealed == ("test_shop.py",)
    assert fence.opened == (os.path.realpath(tmp_path / "env"), "/opened", "/outside")
    assert fence.runs_folder == os.path.realpath(tmp_path / ".loop")
    assert os.path.realpath(sys.executable) in fence.fixed


@needs_fence
def test_sources_are_open_if_a_goal_is_a_command(project: SealedFiles, tmp_path: Path) -> None:
    rules = make_rules("a.lint.clean", proof=Proof.EXECUTION)
    state = make_state(criteria=RunCriteria(rules=rules)).replace(seal=Seal(written=()))
    document, workspace = state.replace(target=Target.ARTIFACT), state.replace(target=Target.WORKSPACE)
    assert plan_fence(make_settings(project.root), tmp_path / ".loop", project, workspace).sealed == ()
    assert plan_fence(make_settings(project.root), tmp_path / ".loop", project, document).sealed == ("test_shop.py",)


@needs_fence
def test_project_without_sealed_files_still_has_a_fence(tmp_path: Path) -> None:
    project = SealedFiles(tmp_path, tmp_path / ".loop" / "guide", ())
    fence = plan_fence(make_settings(tmp_path), tmp_path / ".loop", project, make_state())
    assert (fence.sealed, bool(fence.fixed), bool(fence.build(tmp_path))) == ((), True, True)
