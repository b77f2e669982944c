"""Rules are inferred from a task in plain words, shown and sealed, or the task is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
RUFF = """\
import sys
from pathlib import Path
path = Path("shop.py")
if "--fix" in sys.argv:
    path.write_text(path.read_text().replace("import os\\n", ""))
sys.exit("import os" in path.read_text())
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a configured linter, which is a stub, and without rules."""
    tool = tmp_path / "bin" / "ruff"
    tool.parent.mkdir()
    tool.write_text(f"#!{sys.executable}\n{RUFF}")
    tool.chmod(0o755)
    # The tools of this environment would come first if they were not on the path.
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin:{Path(sys.executable).parent}")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n\n[tool.ruff]\nline-length = 99\n')
    (folder / "shop.py").write_text("import os\n\n\ndef total(prices):\n    return sum(prices)\n")
    (folder / "test_shop.py").write_text("from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n")
    return folder


def make_arguments(task: str, *more: str) -> tuple[str, ...]:
    return ("--loop-task", task, "--loop-yes", "--loop-agent", "builtin", "--loop-alias", "shop", "-v", *more)


def read_state(project: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project / ".loop/shop/run.json").read_text())
    return data


@pytest.mark.measured
def test_lint_rule_is_inferred_in_an_unconfigured_project(project: Path, run: Pytest) -> None:
    done = run(*make_arguments("keep fixing until lint is clean"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "  A fail    2  a.lint.clean  the linter has no complaint (`ruff check .`)  [pyproject.toml:5]" in done.stdout
    )
    assert "workflow: B (debug), undo 2A" in done.stdout
    assert re.search(r"^clarity: \d+ of 10, ", done.stdout, re.MULTILINE)
    assert "inferred: the linter has no complaint (`ruff check .`) (medium): `lint` asks for lint-clean" in done.stdout
    assert "`ruff check --fix .`: made it better" in done.stdout
    assert (project / "shop.py").read_text() == "\n\ndef total(prices):\n    return sum(prices)\n"
    assert not list(project.glob("*.rules.yaml"))


def test_draft_of_fix_until_green_fits_one_screen(project: Path, run: Pytest) -> None:
    (project / "shop.py").write_text("def total(prices):\n    return sum(prices) - 1\n")
    done = run("--loop-task", "fix until green", "--loop-agent", "builtin")
    assert done.returncode == 4
    draft = done.stdout.splitlines()
    assert draft[0].startswith("fix until green · 1 test, 1 failing · agent builtin · ")
    assert draft[1].startswith("judge: test_shop.py (sealed, ")
    assert len(draft) <= 6
    assert not (project / ".loop").exists()


def test_unmeasurable_task_is_refused_with_a_command_to_type(project: Path, run: Pytest) -> None:
    done = run(*make_arguments("make it nice"))
    assert done.returncode == 4
    assert "this cannot be measured: make it nice" in done.stderr
    assert "missing: what to change" in done.stderr
    assert "  for example: pytest --loop-task 'fix the failing tests until `pytest` passes' " in done.stderr
    assert not (project / ".loop").exists()


@pytest.mark.thorough
def test_task_may_limit_the_iterations(project: Path, run: Pytest) -> None:
    run(*make_arguments("fix until green, stop after 2 cycles"))
    assert read_state(project)["max_iterations"] == 2
    run(*make_arguments("fix until green, stop after 2 cycles", "--loop-max-iterations", "3", "--loop-alias", "other"))
    assert json.loads((project / ".loop/other/run.json").read_text())["max_iterations"] == 3


@pytest.mark.thorough
def test_command_in_the_task_is_used_verbatim(project: Path, run: Pytest) -> None:
    done = run(*make_arguments(f"tidy up until `{sys.executable} -m compileall -q shop.py` passes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compileall" in read_state(project)["setup"]["inferred_rules"]


def test_tests_named_in_the_task_are_run(project: Path, run: Pytest) -> None:
    (project / "test_other.py").write_text("def test_other():\n    assert False\n")
    done = run(*make_arguments("fix it until `pytest test_shop.py` passes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  A fail    2  test_shop.py::test_total\n" in done.stdout
    assert "sealed: test_other.py\n" in done.stdout
    assert done.stdout.count("test_other") == 1, done.stdout


def test_rules_of_the_project_come_before_inferred_ones(project: Path, run: Pytest) -> None:
    (project / "it.rules.yaml").write_text(
        "artifact: shop.py\nrules: [{id: a.x, description: x, check: {contains: total}}]\n"
    )
    done = run("--loop-task", "make it nice", "--loop-agent", "builtin", "--loop-workspace", "-v")
    assert done.returncode == 4
    assert re.search(r"  A fail    2  a\.x +x\n", done.stdout)
    assert "inferred" not in done.stdout


def test_edit_of_the_inferred_rule_file_has_no_effect(project: Path, run: Pytest) -> None:
    (project / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n    path = Path('.loop/shop/inferred.rules.yaml')\n"
        "    path.write_text(path.read_text().replace('ruff check .', 'true'))\n"
    )
    words = [
        word if word != "builtin" else "python:agent:work" for word in make_arguments("keep fixing until lint is clean")
    ]
    done = run(*words, "--loop-max-iterations", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "inferred.rules.yaml" in done.stdout
    assert "ruff check ." in (project / ".loop/shop/inferred.rules.yaml").read_text()


def test_missing_tool_is_named_before_anything_is_started(project: Path, run: Pytest) -> None:
    done = run(*make_arguments("make pylint happy"))
    assert done.returncode == 4
    assert done.stderr.splitlines()[:3] == [
        "ERROR: this is judged by `pylint --recursive=y .`, and pylint is not installed (make pylint happy)",
        "  install it: pip install pylint",
        "  to judge by another command, end the task with: until `COMMAND` passes",
    ]
    assert not (project / ".loop").exists()


@pytest.mark.thorough
@pytest.mark.measured
def test_loop_infer_shows_inferred_rules_without_a_run(project: Path, run: Pytest) -> None:
    done = run("--loop-infer", "keep fixing until lint is clean")
    assert done.returncode == 0, done.stdout + done.stderr
    proposal = yaml.safe_load(done.stdout)["proposed_completion"]
    assert proposal["goal"] == "lint-clean"
    assert proposal["verification_command"] == "ruff check ."
    assert proposal["confidence"] == "medium"
    vague = run("--loop-infer", "make it better")
    assert vague.returncode == 4
    assert vague.stdout.startswith("this cannot be measured: make it better\n")
    assert not (project / ".loop").exists()
