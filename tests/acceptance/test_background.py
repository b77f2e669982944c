"""Runs in the background: at most four, followed, paused, and resumed after a crash."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from tests.acceptance.conftest import Pytest

RULES = """
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Guide"}
"""
NAMES = ("alpha", "bravo", "charlie", "delta")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project whose agents wait for their text; processes that remain at the end are killed."""
    (tmp_path / "guide.rules.yaml").write_text(dedent(RULES))
    yield tmp_path
    for files in Store(tmp_path).list_busy_runs():
        files.requests.ask_to_pause()
        wait_for_end(int(files.pid))


def start_detached(run: Pytest, project: Path, alias: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Start a run whose agent returns the text of the file `go-ALIAS`, once it exists."""
    os.mkfifo(project / f"go-{alias}")
    arguments = ("--loop-rules", "guide.rules.yaml", "--loop-agent", f"command:cat go-{alias}", "--loop-yes")
    task = words or ("--loop-task", "Write a guide to our backups", "--loop-detach")
    return run(*task, *arguments, "--loop-alias", alias, "-vv")


def read_conditions(run: Pytest) -> dict[str, str]:
    runs = json.loads(run("--loop-list", "--loop-json", "-").stdout)
    return {item["task_alias"]: item["condition"] or item["status"] for item in runs}


def read_events(project: Path, alias: str) -> list[str]:
    return [item.event for item in Store(project).get_run(alias).read_history().events]


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([handle], [], [], 60)
    os.close(handle)


def kill_run(project: Path, alias: str) -> None:
    pid = int(Store(project).get_run(alias).pid)
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)


def wait_for_request(project: Path, alias: str, times: int) -> None:
    """Wait until the agent has had so many requests."""
    command = [sys.executable, "-m", "pytest", f"--loop-attach={alias}"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        lines = (line for line in follower.stdout if line == f"command:cat go-{alias} · writing ...\n")
        assert len(list(islice(lines, times))) == times
        follower.kill()


@pytest.mark.thorough
def test_four_runs_work_side_by_side_and_a_fifth_is_refused(run: Pytest, project: Path) -> None:
    for alias in NAMES:
        done = start_detached(run, project, alias)
        assert done.returncode == 0, done
        assert f"follow it with pytest-loop attach --run {alias}" in done.stdout
    fifth = start_detached(run, project, "echo")
    assert fifth.returncode == pytest.ExitCode.USAGE_ERROR
    lines = r"  alpha \(iteration \d\): .+\n  bravo .+\n  charlie .+\n  delta .+\n"
    assert re.search(rf"4 runs are active already:\n{lines}stop one with: pytest-loop stop --run NAME", fifth.stderr)
    assert read_conditions(run) == dict.fromkeys(NAMES, "running")

    wait_for_request(project, "charlie", 1)
    kill_run(project, "charlie")
    assert read_conditions(run) == {**dict.fromkeys(NAMES, "running"), "charlie": "crashed"}
    assert run("--loop-resume=charlie", "--loop-detach", "-vv").returncode == 0
    wait_for_request(project, "charlie", 2)
    assert read_conditions(run) == dict.fromkeys(NAMES, "running")

    for alias in reversed(NAMES):
        (project / f"go-{alias}").write_text(f"# Guide of {alias}\n")
        followed = run(f"--loop-attach={alias}")
        assert followed.returncode == 0, followed
        assert "\ndone in " in followed.stdout
        assert Store(project).get_run(alias).artifact.read_text() == f"# Guide of {alias}\n"
    assert read_conditions(run) == dict.fromkeys(NAMES, "completed")
    plain = ["run_started", "plan_created", "artifact_created", "evaluation_done", "phase_switched", "stopped"]
    assert [read_events(project, alias) for alias in NAMES] == [plain] * len(NAMES)


def test_detached_run_has_no_terminal_and_can_be_followed(run: Pytest, project: Path) -> None:
    start_detached(run, project, "alpha")
    pid = int(Store(project).get_run("alpha").pid)
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4] == "0", "it has a terminal"
    command = [sys.executable, "-m", "pytest", "--loop-attach"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert any(line == "command:cat go-alpha · writing ...\n" for line in follower.stdout)
        (project / "go-alpha").write_text("# Guide\n")
        assert any(line.startswith("done in ") for line in follower.stdout)
        assert follower.wait(60) == 0
    again = run("--loop-attach=alpha", "--loop-json", "-")
    assert json.loads(again.stdout)["status"] == "completed"


@pytest.mark.thorough
def test_interrupted_attach_leaves_the_run_working(run: Pytest, project: Path) -> None:
    start_detached(run, project, "alpha")
    command = [sys.executable, "-m", "pytest", "--loop-attach=alpha"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert any(" · writing ..." in line for line in follower.stdout)
        follower.send_signal(signal.SIGINT)
        output = follower.stdout.read()
    assert follower.returncode == pytest.ExitCode.INTERRUPTED
    assert "alpha goes on: end it with pytest-loop stop --run alpha" in output
    assert read_conditions(run) == {"alpha": "running"}
    assert run("--loop-stop").returncode == 0
    stopped = run("--loop-attach")
    assert stopped.returncode == pytest.ExitCode.TESTS_FAILED
    assert " · user_stop: " in stopped.stdout


@pytest.mark.thorough
@pytest.mark.measured
def test_pause_interrupts_the_agent_and_resume_continues(run: Pytest, project: Path) -> None:
    start_detached(run, project, "alpha")
    paused = run("--loop-pause")
    assert (paused.returncode, paused.stdout) == (0, "paused alpha: go on with pytest-loop resume --run alpha\n")
    assert read_conditions(run) == {"alpha": "paused"}
    result = run("--loop-attach")
    assert result.returncode == pytest.ExitCode.INTERRUPTED
    assert result.stdout.endswith("alpha is paused: go on with pytest-loop resume --run alpha\n")
    again = run("--loop-pause=alpha", "--loop-json", "-")
    assert again.stderr == "no process works on alpha: running (paused)\n"
    assert run("--loop-resume", "alpha", "--loop-detach", "--loop-json", "-").returncode == 0
    (project / "go-alpha").write_text("# Guide\n")
    assert run("--loop-attach").returncode == 0


def test_task_text_can_detach_the_run(run: Pytest, project: Path) -> None:
    done = start_detached(
        run, project, "alpha", "--loop-task", "Write a guide to our backups, and run this in the background"
    )
    assert "alpha works in the background: process " in done.stdout
    assert read_conditions(run) == {"alpha": "running"}


@pytest.mark.thorough
@pytest.mark.measured
def test_error_of_the_background_process_is_printed(
    run: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "once.py").write_text(
        "import sys\nif '--loop-resume=alpha' in sys.argv:\n    raise SystemExit('only once')\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{project}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    task = ("--loop-task", "Write a guide to our backups", "--loop-detach")
    done = start_detached(run, project, "alpha", *task, "-p", "once")
    assert done.returncode == 1
    assert done.stdout.endswith("\nonly once\n")
    assert read_conditions(run) == {"alpha": "paused"}


@pytest.mark.thorough
def test_run_without_a_log_refuses_attach(run: Pytest, project: Path) -> None:
    assert "there is no run in" in run("--loop-attach").stderr
    assert "there is no active run to pause: pytest-loop list shows all runs" in run("--loop-pause").stderr
    run(
        "--loop-task",
        "Write a guide to our backups",
        "--loop-rules",
        "guide.rules.yaml",
        "--loop-yes",
        "--loop-agent",
        "command:echo '# Guide'",
    )
    done = run("--loop-attach")
    assert "has no log: only runs started with --loop-detach can be attached to" in done.stderr


# -- three attempts


@pytest.mark.thorough
def test_run_that_always_dies_is_resumed_three_times_unless_forced(run: Pytest, project: Path) -> None:
    start_detached(run, project, "alpha")
    files = Store(project).get_run("alpha")
    wait_for_request(project, "alpha", 1)
    for attempt in (1, 2, 3):
        kill_run(project, "alpha")
        assert files.owner is Owner.DEAD
        assert run("--loop-resume", "--loop-detach", "-vv").returncode == 0
        wait_for_request(project, "alpha", attempt + 1)
        assert f"alpha: its process died; going on (attempt {attempt})\n" in files.log.path.read_text()
    kill_run(project, "alpha")
    for _ in range(2):
        refused = run("--loop-resume")
        assert refused.returncode == pytest.ExitCode.USAGE_ERROR
        assert (
            "alpha was taken up 3 times at PRODUCE_PREPARE of iteration 1, and its process died each time: "
            "find out why, then go on with pytest-loop resume --run alpha --force"
        ) in refused.stderr
    assert run("--loop-resume", "--loop-detach", "-vv").returncode == pytest.ExitCode.USAGE_ERROR
    assert run("--loop-resume", "--loop-force", "--loop-detach", "-vv").returncode == 0
    wait_for_request(project, "alpha", 5)
    (project / "go-alpha").write_text("# Guide\n")
    assert run("--loop-attach").returncode == 0


def test_only_attempts_since_the_last_evaluation_count(project: Path) -> None:
    files = Store(project).get_run("alpha")
    files.acquire()
    files.record_attempt(2, evaluations=1)
    other = Store(project).get_run("alpha")
    assert (other.count_attempts(1), other.count_attempts(2), other.pid) == (2, 0, str(os.getpid()))
    files.release()
    assert other.count_attempts(1) == 0
