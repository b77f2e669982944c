"""Runs that fix a small project with several broken functions until its tests pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.codex_home import make_codex_home
from tests.agents.model_server import ModelServer, Turn

ROOT = Path(__file__).parents[2]
Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
FIX = "import sys, types; sys.path.insert(0, '.'); import scripted_fixer; scripted_fixer.work(types.SimpleNamespace(iteration={}))"
WRONG_EDIT = "sed -i 's/return found$/return found[:-1]/' ledger.py"
HALF_OF_THE_FIXES = f'{sys.executable} -c "{FIX.format(1)}"'
REST_OF_THE_FIXES = f"sed -i 's/return found.*/return found/' ledger.py && {sys.executable} -c \"{FIX.format(2)}\""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example in a git repository."""
    folder = Path(shutil.copytree(ROOT / "examples" / "fix_until_green", tmp_path / "project"))
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def run_git(project: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True).stdout


def read_state(project: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((project / ".loop/fix-until-green/run.json").read_text())
    return state


START = ("--loop-task", "fix until green", "--loop-yes")


@pytest.mark.measured
def test_scripted_agent_fixes_the_example_and_the_run_is_documented(
    project: Path, run: Pytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    before = run_git(project, "rev-parse", "HEAD"), run_git(project, "ls-files", "-s")
    process = run(*START, "--loop-agent", "python:scripted_fixer:work", "--loop-json", "result.json")
    assert process.returncode == 0, process.stdout + process.stderr
    assert [line for line in process.stdout.splitlines() if line[:2] in ("1/", "2/", "3/")] == [
        "1/4  ✗ 2 of 9 pass",
        "2/4  ✗ 5 of 9 pass (+3)",
        "3/4  ✓ 9 of 9 pass (+4)",
    ]
    assert (run_git(project, "rev-parse", "HEAD"), run_git(project, "ls-files", "-s")) == before
    refs = run_git(project, "for-each-ref", "--format=%(refname)", "refs/pytest-loop").split()
    assert [name.rpartition("/")[2] for name in refs] == ["1", "2", "3"]
    change = (project / ".loop/fix-until-green/artifact.md").read_text()
    assert "- modified ledger.py (+" in change
    assert "+    return found[1:]" in change
    assert "done in " in run("--loop-status").stdout
    assert run("--loop-history", "-v").stdout.count("evaluation_done") == 3
    assert json.loads((project / "result.json").read_text())["status"] == "completed"
    assert "| 3 |" in (tmp_path / "summary.md").read_text()
    restored = run("--loop-restore=1")
    assert (restored.returncode, run_git(project, "status", "--short", "ledger.py")) == (0, "")


@pytest.mark.thorough
def test_real_codex_fixes_the_example_after_a_wrong_edit(
    project: Path, run: Pytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [
        turn
        for number, command in enumerate((WRONG_EDIT, HALF_OF_THE_FIXES, REST_OF_THE_FIXES), 1)
        for turn in (Turn(tools=(("exec_command", {"cmd": command}),)), Turn(f"Step {number}."))
    ]
    with ModelServer(*turns) as server:
        make_codex_home(tmp_path, server.url, monkeypatch)
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        process = run(*START, "--loop-agent", "codex")
    assert process.returncode == 0, process.stdout + process.stderr
    state = read_state(project)
    assert (state["status"], state["iteration"], state["progress"]["usage"]["tokens"]) == ("completed", 4, 660)
    assert run("-q").returncode == 0


def test_passing_project_needs_no_agent(project: Path, run: Pytest) -> None:
    (project / "tests" / "test_ledger.py").write_text("def test_it(): pass\n")
    process = run(*START, "--loop-agent", "command:false")
    assert process.returncode == 0, process.stdout
    assert "REFINE" not in process.stdout


@pytest.mark.thorough
def test_missing_module_is_fixed(project: Path, run: Pytest) -> None:
    (project / "ledger.py").rename(project / "gone.py")
    (project / "agent_of_mine.py").write_text(
        "from pathlib import Path\n"
        "import scripted_fixer\n"
        "def work(request):\n"
        "    if request.iteration == 1:\n"
        "        Path('gone.py').rename('ledger.py')\n"
        "        scripted_fixer.work(request)\n"
        "    return scripted_fixer.work(request)\n"
    )
    process = run(*START, "--loop-agent", "python:agent_of_mine:work")
    assert "tests/test_ledger.py" in process.stdout
    assert process.returncode == 0, process.stdout + process.stderr


def test_skipped_and_unstable_tests_are_named_before_the_first_edit(project: Path, run: Pytest) -> None:
    note = Path("/dev/shm", f"pytest-loop-{uuid4().hex}")
    (project / "tests" / "test_others.py").write_text(
        "import pytest\nfrom pathlib import Path\n"
        "@pytest.mark.skip\ndef test_skipped(): pass\n"
        "@pytest.mark.xfail\ndef test_expected(): assert 0\n"
        f"def test_unstable():\n    seen = Path({str(note)!r})\n"
        "    is_first = not seen.exists()\n    seen.touch()\n    assert not is_first\n"
    )
    process = run(*START, "--loop-agent", "python:scripted_fixer:work")
    assert (
        "unstable: tests/test_others.py::test_unstable (not the same twice, so that it does not block)"
        in process.stdout
    )
    names = "tests/test_others.py::test_skipped, tests/test_others.py::test_expected"
    assert f"not judged: {names} (skipped or expected to fail already)" in process.stdout
    assert process.returncode == 0, process.stdout + process.stderr
    note.unlink(missing_ok=True)


@pytest.mark.thorough
def test_keep_best_restores_the_best_iteration(project: Path, run: Pytest) -> None:
    (project / "spoiler.py").write_text(
        "from pathlib import Path\nimport scripted_fixer\n"
        "def work(request):\n"
        "    if request.iteration == 1:\n        return scripted_fixer.work(request)\n"
        "    Path('ledger.py').write_text('broken')\n"
    )
    arguments = ("--loop-agent", "python:spoiler:work", "--loop-max-iterations", "3", "--loop-keep=best")
    process = run(*START, *arguments)
    assert process.returncode == 1
    assert "the files are those of iteration 2, which scored 0.555" in process.stdout
    assert "def largest" in (project / "ledger.py").read_text()
    assert "3/3  ✗ 0 of 9 pass (5 broken)" in process.stdout


def test_edits_outside_of_allow_are_reverted(project: Path, run: Pytest) -> None:
    (project / "notes.md").write_text("mine\n")
    (project / "writer.py").write_text(
        "from pathlib import Path\nimport scripted_fixer\n"
        "def work(request):\n    Path('notes.md').write_text('yours')\n    return scripted_fixer.work(request)\n"
    )
    process = run(*START, "--loop-agent", "python:writer:work", "--loop-allow", "ledger.py")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "not allowed: notes.md: was changed, and was put back" in process.stdout
    assert (project / "notes.md").read_text() == "mine\n"


def test_next_agent_takes_over_without_progress(project: Path, run: Pytest) -> None:
    (project / "idle.py").write_text("def work(request):\n    return 'I thought about it'\n")
    agents = ("--loop-agent", "python:idle:work", "--loop-agent", "python:late:work", "--loop-max-iterations", "6")
    (project / "late.py").write_text(
        "import types\nimport scripted_fixer\n"
        "def work(request):\n"
        "    for number in (1, 2):\n        scripted_fixer.work(types.SimpleNamespace(iteration=number))\n"
    )
    process = run(*START, *agents)
    assert "python:late:work takes over: the agent before has stopped making progress" in process.stdout
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.thorough
def test_exit_code_of_an_agent_is_no_verdict(project: Path, run: Pytest) -> None:
    command = f'{sys.executable} -c "{FIX.format(1)}; {FIX.format(2)}; sys.exit(3)"'
    process = run(*START, "--loop-agent", f"command:{command}")
    assert "ended with exit code 3; what it edited is judged all the same" in process.stdout
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.thorough
def test_agent_that_fails_without_an_edit_fails_the_run(project: Path, run: Pytest) -> None:
    process = run(*START, "--loop-agent", "command:false")
    assert (process.returncode, read_state(project)["stop"]["reason"]) == (1, "phase_error"), process.stdout


@pytest.mark.thorough
@pytest.mark.measured
def test_score_that_rises_without_an_edit_is_evaluated_again(project: Path, run: Pytest, tmp_path: Path) -> None:
    shutil.rmtree(project / "tests")
    (project / "tests").mkdir()
    (project / "tests" / "test_late.py").write_text(
        f"from pathlib import Path\nCOUNT = Path({str(tmp_path / 'count')!r})\n"
        "def test_it():\n"
        "    seen = len(COUNT.read_text()) if COUNT.exists() else 0\n"
        "    COUNT.write_text('x' * (seen + 1))\n"
        "    assert seen >= 3\n"
    )
    (project / "idle.py").write_text("def work(request):\n    return 'nothing to do'\n")
    process = run(*START, "--loop-agent", "python:idle:work")
    assert "unstable: the tests: the score rose, although no file has changed" in process.stdout
    assert len((tmp_path / "count").read_text()) == 7  # what passes is judged again in a clean room
    assert process.returncode == 1, process.stdout + process.stderr
    assert read_state(project)["stop"]["reason"] == "unconfirmed"


@pytest.mark.thorough
def test_run_resumes_after_an_agent_cleaned_the_work_tree(project: Path, run: Pytest) -> None:
    (project / "cleaner.py").write_text(
        "import subprocess\nimport scripted_fixer\n"
        "def work(request):\n"
        "    subprocess.run(['git', 'clean', '-fdxq', '-e', '*.py'], check=True)\n"
        "    return scripted_fixer.work(request)\n"
    )
    process = run(*START, "--loop-agent", "python:cleaner:work")
    assert "history.jsonl was deleted or replaced while the run was going on" in process.stderr
    again = run("--loop-resume", "--loop-agent", "python:scripted_fixer:work", "-q")
    assert again.returncode == 0, again.stdout + again.stderr
    assert run("--loop-restore=1").returncode == 0
