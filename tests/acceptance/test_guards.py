"""Tests that pass before the first edit are guards: whatever the task, they must keep passing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import MakeProject, Pytest

RULES = """
    rules:
      - {id: a.style.short, description: shop.py is short, check: {command: python3 measure.py}}
"""
MEASURE = "import pathlib, sys\nsys.exit(len(pathlib.Path('shop.py').read_text().splitlines()) > 3)\n"
SHOP = "import os\n\ndef add(a, b):\n    return a + b\n"
TESTS = """
    from shop import add

    def test_add():
        assert add(1, 2) == 3

    def test_broken_from_the_start():
        assert add(1, 2) == 4
"""
AGENT = """
    from pathlib import Path

    def empty(request):
        Path("shop.py").write_text('"Nothing."\\n')

    def empty_first(request):
        Path("shop.py").write_text('"Nothing."\\n' if request.iteration == 1 else "def add(a, b):\\n    return a + b\\n")

    def reorder(request):
        Path("shop.py").write_text("def add(a, b):\\n    return b + a\\n")

    def idle(request):
        return "Done."
"""
START = ("--loop-workspace", "--loop-yes", "--loop-json", "result.json")
SHORTEN = ("--loop-task", "fix style until shop.py is short", "--loop-rules", "style.rules.yaml", *START)


@pytest.fixture
def project(make_project: MakeProject) -> Path:
    folder = make_project(
        style__rules_yaml=RULES, measure_py=MEASURE, shop_py=SHOP, test_shop_py=TESTS, agents_py=AGENT
    )
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return folder


def read_result(project: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((project / "result.json").read_text())
    return result


def test_goal_reached_by_breaking_a_test_is_no_success(project: Path, run: Pytest) -> None:
    process = run(*SHORTEN, "--loop-agent", "python:agents:empty", "--loop-max-iterations", "2")
    assert process.returncode == 1, process.stdout
    assert " · 1 rule, 1 failing, 1 guard that must keep passing · " in process.stdout
    assert "test_add (passed before)" in process.stdout
    assert read_result(project)["failed"] == ["test_shop.py::test_add"]


def test_agent_is_told_which_guard_it_broke_and_can_still_succeed(project: Path, run: Pytest) -> None:
    process = run(*SHORTEN, "--loop-agent", "python:agents:empty_first")
    assert process.returncode == 0, process.stdout
    assert "test_add (passed before)" in process.stdout
    assert read_result(project)["rules"] == {"total": 1, "passed": 1}


@pytest.mark.thorough
def test_guards_can_be_lifted_by_a_flag_or_by_naming_the_test(project: Path, run: Pytest) -> None:
    agent = ("--loop-agent", "python:agents:empty")
    assert run(*SHORTEN, *agent, "--loop-guards", "none").returncode == 0
    (project / "shop.py").write_text(SHOP)
    named = ("--loop-task", "fix style until shop.py is short; test_add is wrong", *SHORTEN[2:])
    assert run(*named, *agent).returncode == 0


def test_tests_that_are_not_selected_are_guards(project: Path, run: Pytest) -> None:
    (project / "shop.py").write_text("def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a + b\n")
    (project / "style.rules.yaml").unlink()
    (project / "test_sub.py").write_text("from shop import sub\ndef test_sub(): assert sub(2, 1) == 1\n")
    (project / "agents.py").write_text(
        "from pathlib import Path\n"
        "def swap(request):\n    Path('shop.py').write_text('def sub(a, b):\\n    return a - b\\nadd = sub\\n')\n"
    )
    select = ("-k", "test_sub", "--loop-task", "fix until green", *START, "--loop-agent", "python:agents:swap")
    process = run(*select, "--loop-max-iterations", "2")
    assert process.returncode == 1, process.stdout
    assert read_result(project)["failed"] == ["test_shop.py::test_add"]


def test_refactoring_runs_on_its_guards_and_is_monitored(project: Path, run: Pytest) -> None:
    (project / "test_shop.py").write_text("from shop import add\ndef test_add(): assert add(1, 2) == 3\n")
    task = ("--loop-task", "refactor shop.py", *START)
    process = run(*task, "--loop-agent", "python:agents:reorder", "test_shop.py")
    assert process.returncode == 0, process.stdout
    assert read_result(project)["verdict"]["word"] == "MONITOR"
    assert (project / "shop.py").read_text() == "def add(a, b):\n    return b + a\n"
    process = run(*task, "--loop-agent", "python:agents:idle", "test_shop.py")
    assert process.returncode == 1, process.stdout
    assert read_result(project)["stop"]["reason"] == "unconfirmed"


def test_new_behaviour_in_a_green_project_is_refused(project: Path, run: Pytest) -> None:
    (project / "test_shop.py").write_text("from shop import add\ndef test_add(): assert add(1, 2) == 3\n")
    process = run("--loop-task", "implement a CSV export", "--loop-agent", "python:agents:idle", *START, "test_shop.py")
    assert process.returncode == 4, process.stdout
    assert "every rule passes before the first edit" in process.stderr
    assert not (project / ".loop").exists()


def test_condition_that_holds_already_is_completed_without_an_agent(project: Path, run: Pytest) -> None:
    (project / "test_shop.py").write_text("from shop import add\ndef test_add(): assert add(1, 2) == 3\n")
    process = run("--loop-task", "fix until green", "--loop-agent", "python:agents:empty", *START, "test_shop.py")
    assert process.returncode == 0, process.stdout
    assert "there was nothing to do" in process.stdout


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_command_that_runs_the_tests_is_a_guard_where_pytest_collects_none(project: Path, run: Pytest) -> None:
    for name in ("test_shop.py", "pytest.ini", "style.rules.yaml"):
        (project / name).unlink()
    scripts = {"test": "grep -q add shop.py", "lint": "! grep -q os shop.py"}
    package = {"name": "shop", "version": "1.0.0", "scripts": scripts}
    (project / "package.json").write_text(json.dumps(package))
    task = ("--loop-task", "fix until `npm run lint` passes", "--loop-agent", "python:agents:empty")
    process = run(*task, "--loop-max-iterations", "2", *START)
    assert process.returncode == 1, process.stdout
    assert " · 1 rule, 1 failing, 1 guard that must keep passing · " in process.stdout
    assert "a.guard.tests (passed before)" in process.stdout
