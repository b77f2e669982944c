"""Tests first: an agent writes failing tests for a task that nothing measures, and then does the task."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import MakeProject, Pytest
from tests.acceptance.terminal import Answers, run_at_terminal

TESTS = "from shop import export\n\n\ndef test_header():\n    assert export([]) == 'name,price\\n'\n"
EXPORT = "\n\ndef export(rows):\n    return 'name,price\\n'\n"
# In PREPARE it also does the task, which comes too early.
COMMAND = f"""\
import os
from pathlib import Path

if os.environ["LOOP_STEP"] == "PREPARE":
    Path("test_export.py").write_text({TESTS!r})
with open("shop.py", "a") as file:
    file.write({EXPORT!r})
"""
# The first call never ends, the second one finds what it has left.
AGENT = f"""\
import time
from pathlib import Path

HERE = Path(__file__).parent


def work(request):
    if request.step != "PREPARE":
        Path("shop.py").write_text(Path("shop.py").read_text() + {EXPORT!r})
        return
    calls = HERE / ".loop/calls.txt"
    number = len(calls.read_text()) if calls.exists() else 0
    if number == 0 and (HERE / ".loop/hang").exists():
        (HERE / "test_export.py").write_text("from shop import ex")
        (HERE / "shop.py").write_text("half an edit")
        time.sleep(100)
    if "also an empty row" in request.prompt:
        Path("test_export.py").write_text({TESTS!r} + "\\n\\ndef test_row():\\n    assert export(['']) == 'name,price\\\\n'\\n")
    else:
        Path("test_export.py").write_text({TESTS!r} if "bad" not in request.prompt else "import openpyxl\\n\\ndef test_it():\\n    assert openpyxl.x\\n")
"""
TASK = ("--loop-task", "implement a CSV export", "--loop-alias", "csv", "-q")


@pytest.fixture
def project(make_project: MakeProject) -> Path:
    return make_project(
        command_py=COMMAND,
        agent_py=AGENT,
        shop_py="def total(prices):\n    return sum(prices)\n",
        test_shop_py="import shop\n\n\ndef test_total():\n    assert shop.total([1, 2]) == 3\n",
    )


def list_events(project: Path) -> list[str]:
    return [json.loads(line)["event"] for line in (project / ".loop/csv/history.jsonl").read_text().splitlines()]


def read_state(project: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project / ".loop/csv/run.json").read_text())
    return data


def test_task_that_nothing_measures_is_refused_with_the_flag_and_done_with_it(project: Path, run: Pytest) -> None:
    start = (*TASK, "--loop-agent", f"command:{sys.executable} command.py", "--loop-yes")
    refused = run(*start)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "let the agent write failing tests first, which you confirm: --loop-tests-first\n" in refused.stderr
    done = run(*start, "--loop-tests-first", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests first: an agent writes tests for the task" in done.stdout
    assert "not allowed before the tests are confirmed: shop.py: was changed, and was put back\n" in done.stdout
    assert "  fails: test_export.py: ImportError: cannot import name 'export' from 'shop'" in done.stdout
    assert list_events(project)[:3] == ["run_started", "tests_prepared", "evaluation_done"]
    state = read_state(project)
    assert [rule["id"] for rule in state["criteria"]["rules"]] == ["test_shop.py::test_total", "test_export.py"]
    assert "/test_export.py" in state["setup"]["seal"]["patterns"]
    assert (project / "shop.py").read_text().count("def export") == 1


@pytest.mark.thorough
def test_run_that_is_killed_while_tests_are_written_is_resumed(project: Path, run: Pytest) -> None:
    (project / ".loop").mkdir()
    (project / ".loop/hang").touch()
    words = (*TASK, "--loop-agent", "python:agent:work", "--loop-yes", "--loop-tests-first", "--loop-fence=off")
    with subprocess.Popen([sys.executable, "-m", "pytest", *words], cwd=project, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 100
        while "half" not in (project / "shop.py").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (project / ".loop/hang").unlink()
    done = run("--loop-resume", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not allowed before the tests are confirmed: shop.py: was changed, and was put back\n" in done.stdout
    assert list_events(project)[:2] == ["run_started", "tests_prepared"]
    assert (project / "test_export.py").read_text() == TESTS


def test_user_at_a_terminal_is_offered_tests_declines_them_and_answers(project: Path, run: Pytest) -> None:
    words = (*TASK, "--loop-agent", "python:agent:work")
    answers: Answers = {
        "let the agent write failing tests first, for you to confirm? [y/N]": "y",
        "start? [y/N]": "y",
        "judge the work by these tests? [y/N]": "n",
    }
    code, output = run_at_terminal(project, words, answers)
    assert code == 1, output
    assert "nothing measures 'implement a CSV export'" in output
    assert "edit them and type `pytest-loop resume`, or say with `pytest-loop answer TEXT`" in output
    assert read_state(project)["stop"]["reason"] == "user_stop"
    done = run("--loop-resume", "--loop-answer", "also an empty row", "--loop-yes", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  |     assert export(['']) == 'name,price\\n'\n" in done.stdout


@pytest.mark.thorough
def test_tests_that_break_the_contract_twice_end_the_run(project: Path, run: Pytest) -> None:
    task = ("--loop-task", "implement a bad CSV export", *TASK[2:])
    done = run(*task, "--loop-agent", "python:agent:work", "--loop-yes", "--loop-tests-first")
    assert done.returncode == 1, done.stdout + done.stderr
    assert list_events(project) == ["run_started", "phase_error", "phase_error", "failed"]
    reason = "test_export.py fails for the wrong reason: it needs openpyxl, which is not installed"
    assert done.stdout.count(reason) == 3
    assert not any(name in list_events(project) for name in ("refinement_done", "evaluation_done"))


@pytest.mark.thorough
def test_project_without_tests_begins_with_them(project: Path, run: Pytest) -> None:
    (project / "test_shop.py").unlink()
    done = run(*TASK, "--loop-agent", "python:agent:work", "--loop-yes", "--loop-tests-first")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_export.py" in [rule["id"] for rule in read_state(project)["criteria"]["rules"]]
