"""Among workers quiet rules that pass are told together; whoever counts them counts the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ALONE

Write = Callable[..., Path]

MESSAGES = """
def pytest_report_from_serializable(data):
    with open("messages", "a") as file:
        file.write(f"{data['nodeid']} {'carries' if 'loop_carried' in data else 'alone'}\\n")
"""
WAYS = ["load", "loadscope", "loadfile", "loadgroup", "worksteal"]
SCORE = "it  FAIL  0.991 (238 of 240) *119 passed, 1 failed"


@pytest.fixture
def many(pytester: pytest.Pytester, rule_file: Write) -> pytest.Pytester:
    """120 rules, of which the 60th does not pass."""
    wanted = ["Title" if number != 60 else "nothing of it" for number in range(120)]
    rules = [f"- {{id: a.{at:03}, description: one, check: {{contains: {text}}}}}" for at, text in enumerate(wanted)]
    rule_file("artifact: doc.md\nrules:\n" + "\n".join(f"  {rule}" for rule in rules))
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


@pytest.mark.parametrize("way", WAYS)
def test_rules_are_counted_alike_however_they_are_shared(many: pytest.Pytester, way: str) -> None:
    many.makeconftest(MESSAGES)
    result = many.runpytest_subprocess("-n2", f"--dist={way}", *ALONE, timeout=60)
    result.assert_outcomes(passed=119, failed=1)
    result.stdout.fnmatch_lines([SCORE])
    heard = (many.path / "messages").read_text().splitlines()
    assert len(heard) < 60 or way == "loadgroup", "which hands out one rule at a time"
    assert any(line.startswith("it.rules.yaml::a.060 ") for line in heard)


@pytest.mark.parametrize("more", ["-vv", "--durations=1", "--junitxml=it.xml"])
def test_who_wants_to_hear_of_each_hears_of_each(many: pytest.Pytester, more: str) -> None:
    many.makeconftest(MESSAGES)
    many.runpytest_subprocess("-n2", *ALONE, more, timeout=60).assert_outcomes(passed=119, failed=1)
    assert len((many.path / "messages").read_text().splitlines()) >= 120


def test_the_first_failure_ends_a_session(many: pytest.Pytester) -> None:
    result = many.runpytest_subprocess("-n1", "-x", *ALONE, timeout=60)
    assert result.parseoutcomes() == {"passed": 60, "failed": 1}


IMPORTED = """
import sys

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        print("imported", sorted(name for name in sys.modules if name.startswith(("pydantic", "yaml", "pytest_loop.core"))))
"""


def test_workers_of_a_project_without_rules_cost_no_import(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(IMPORTED)
    pytester.makepyfile("def test_it():\n    pass\n")
    words = [word for word in ALONE if word != "-q"]
    result = pytester.run(sys.executable, "-m", "pytest", "-n2", "-s", *words, "-p", "no:hypothesispytest", timeout=60)
    result.stdout.fnmatch_lines(["*imported []*"])


def test_who_ends_a_worker_is_named_and_those_before_it_have_passed(
    pytester: pytest.Pytester, rule_file: Write
) -> None:
    quiet = [f"  - {{id: a.{at:03}, description: one, check: {{contains: Title}}}}" for at in range(30)]
    quiet.insert(20, "  - {id: a.ends, description: ends, check: {python: 'judges:judge'}}")
    rule_file("artifact: doc.md\nrules:\n" + "\n".join(quiet))
    (pytester.path / "doc.md").write_text("# Title\n")
    (pytester.path / "judges.py").write_text("import os\n\ndef judge(path, root):\n    os._exit(3)\n")
    result = pytester.runpytest_subprocess("-n2", "--max-worker-restart=0", "--maxschedchunk=40", *ALONE, timeout=60)
    result.stdout.fnmatch_lines(["*crashed while running 'it.rules.yaml::a.ends'*"])
    assert result.parseoutcomes()["failed"] == 1
