"""Judging sessions with workers of xdist."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import SessionPlan
from pytest_loop.session.xdist import SharedFolder
from tests.conftest import ONLY_XDIST

WriteRules = Callable[..., Path]


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: WriteRules) -> pytest.Pytester:
    """120 rules, of which the 60th fails."""
    texts = ["Title" if number != 60 else "nothing of it" for number in range(120)]
    rules = [f"- {{id: a.{at:03}, description: one, check: {{contains: {text}}}}}" for at, text in enumerate(texts)]
    write_rule_file("artifact: doc.md\nrules:\n" + "\n".join(f"  {rule}" for rule in rules))
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


@pytest.mark.parametrize("dist", ["load", "loadscope", "loadfile", "loadgroup", "worksteal"])
def test_the_score_is_the_same_with_every_way_of_distribution(project: pytest.Pytester, dist: str) -> None:
    result = project.runpytest_subprocess("-n2", f"--dist={dist}", *ONLY_XDIST, timeout=60)
    result.assert_outcomes(passed=119, failed=1)
    result.stdout.fnmatch_lines(["it  FAIL  0.991 (238 of 240) *119 passed, 1 failed"])


def test_rules_that_two_workers_judge_are_counted_twice(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-n2", "--dist=each", *ONLY_XDIST, timeout=60)
    result.assert_outcomes(passed=238, failed=2)


def test_the_first_failure_ends_a_session(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-n1", "-x", *ONLY_XDIST, timeout=60)
    assert result.parseoutcomes() == {"passed": 60, "failed": 1}


PRINT_IMPORTS = """
import sys

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        print("imported", sorted(name for name in sys.modules if name.startswith(("pydantic", "yaml", "pytest_loop.core"))))
"""


def test_the_controller_imports_nothing_heavy_without_rules(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PRINT_IMPORTS)
    pytester.makepyfile("def test_it():\n    pass\n")
    words = [word for word in ONLY_XDIST if word != "-q"]
    result = pytester.run(sys.executable, "-m", "pytest", "-n2", "-s", *words, "-p", "no:hypothesispytest", timeout=60)
    result.stdout.fnmatch_lines(["*imported []*"])


def test_the_rule_that_crashes_a_worker_is_named(pytester: pytest.Pytester, write_rule_file: WriteRules) -> None:
    rules = [f"  - {{id: a.{at:03}, description: one, check: {{contains: Title}}}}" for at in range(30)]
    rules.insert(20, "  - {id: a.ends, description: ends, check: {python: 'judges:judge'}}")
    write_rule_file("artifact: doc.md\nrules:\n" + "\n".join(rules))
    (pytester.path / "doc.md").write_text("# Title\n")
    (pytester.path / "judges.py").write_text("import os\n\ndef judge(path, root):\n    os._exit(3)\n")
    result = pytester.runpytest_subprocess(
        "-n2", "--max-worker-restart=0", "--maxschedchunk=40", *ONLY_XDIST, timeout=60
    )
    result.stdout.fnmatch_lines(["*crashed while running 'it.rules.yaml::a.ends'*"])
    assert result.parseoutcomes()["failed"] == 1


def test_a_shared_folder_keeps_the_first_plan(tmp_path: Path) -> None:
    controller, worker = SharedFolder(tmp_path / "shared"), SharedFolder(tmp_path / "shared")
    assert controller.read_plan() is None
    assert not controller.path.exists()
    worker.write_plan(SessionPlan(judges=("first",)))
    worker.write_plan(SessionPlan(judges=("second",)))
    assert SessionPlan.model_validate_json(controller.read_plan() or "").judges == ("first",)
    controller.delete()
    assert not controller.path.exists()


def test_two_shared_folders_have_different_paths() -> None:
    assert SharedFolder().path != SharedFolder().path
