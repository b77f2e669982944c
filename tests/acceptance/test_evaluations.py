"""Reuse of verdicts between evaluations, and evaluations that end early."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

Write = Callable[..., Path]

RULES = """
    artifact: guide.md
    rules:
      - {id: a.content.title, description: Has a title, check: {contains: "# Guide"}}
      - id: a.data
        description: The data is good
        check: {command: "python count.py", inputs: [count.py, data.txt]}
"""
COUNT = "with open('calls', 'a') as file: file.write('x')\nassert open('data.txt').read() == 'good'\n"


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: Write) -> pytest.Pytester:
    write_rule_file(RULES, "guide.rules.yaml")
    (pytester.path / "count.py").write_text(COUNT)
    (pytester.path / "data.txt").write_text("good")
    return pytester


def run_loop(project: pytest.Pytester, agent: str, *arguments: str) -> pytest.RunResult:
    (project.path / "agents.py").write_text(agent)
    start = ("--loop-task", "fix until green", "--loop-agent", "python:agents:work", "--loop-yes")
    return project.runpytest_subprocess(*start, *arguments)


def read_evaluations(project: pytest.Pytester) -> list[dict[str, Any]]:
    lines = (project.path / ".loop/fix-until-green/history.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["payload"] for event in events if event["event"] == "evaluation_done"]


WRITER = """
    from pytest_loop import AgentReply

    def work(request):
        return AgentReply(text="# Guide" if request.iteration >= {turns} else f"{{request.step}} {{request.iteration}}")
"""


def make_writer(turns: int) -> str:
    return dedent(WRITER).format(turns=turns)


@WORKERS_IF_THOROUGH
def test_verdict_is_reused_if_the_inputs_of_a_rule_are_unchanged(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run_loop(project, make_writer(2), "--loop-rules", "guide.rules.yaml", "-v", *workers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["*1 reused in*"])
    calls = (project.path / "calls").read_text()
    assert (len(calls), len(read_evaluations(project))) == (2, 3)  # the first evaluation and the final one


@pytest.mark.thorough
@pytest.mark.measured
def test_failure_is_reused_until_an_input_changes(project: pytest.Pytester) -> None:
    (project.path / "data.txt").write_text("bad")
    agent = make_writer(1) + "\n" + "from pathlib import Path\nwrite = work\n"
    agent += "def work(request):\n    if request.iteration == 2: Path('data.txt').write_text('good')\n    return write(request)\n"
    result = run_loop(project, agent, "--loop-rules", "guide.rules.yaml", "--loop-allow", "data.txt", "-v")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    calls = (project.path / "calls").read_text()
    assert len(calls) == 3  # the first evaluation, the third, and the final one
    assert [evaluation["passed"] for evaluation in read_evaluations(project)] == [False, False, True]


@pytest.mark.thorough
def test_no_reuse_runs_every_rule_again(project: pytest.Pytester) -> None:
    result = run_loop(project, make_writer(2), "--loop-rules", "guide.rules.yaml", "-v", "--loop-no-reuse")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert "reused" not in result.stdout.str()
    assert len((project.path / "calls").read_text()) == len(read_evaluations(project))


TESTS = """
    import shop, time

    def test_slow():
        assert shop.slow() == 1

    def test_broken():
        assert shop.broken() == 1

    def test_late():
        with open("late", "a") as file: file.write("x")
        assert shop.late() == 1
"""
SHOP = "def slow(): return 1\ndef broken(): return 0\ndef late(): return 0\n"
FIXER = """
    from pathlib import Path

    def work(request):
        fixed = ["slow", "late", "broken"][: request.iteration + 1]
        names = ("slow", "broken", "late")
        Path("shop.py").write_text("".join(f"def {name}(): return {int(name in fixed)}\\n" for name in names))
"""


@WORKERS_IF_THOROUGH
def test_stop_early_ends_an_evaluation_that_cannot_pass(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(test_shop=TESTS, shop=SHOP)
    result = run_loop(pytester, dedent(FIXER), "-v", "--loop-stop-early", *workers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert [evaluation["passed"] for evaluation in read_evaluations(pytester)] == [False, False, True]
    assert read_evaluations(pytester)[-1]["total"] == 3
    if not workers:
        # at most two baseline sessions, one per evaluation and one that decides; the first two evaluations end earlier
        assert len((pytester.path / "late").read_text()) < 3 + len(read_evaluations(pytester))


@pytest.mark.thorough
def test_run_continues_although_sessions_stop_at_the_first_failure(pytester: pytest.Pytester) -> None:
    """With workers, `-x` ends a session like an interrupt."""
    pytester.makepyfile(test_shop=TESTS, shop=SHOP)
    result = run_loop(pytester, dedent(FIXER), "-v", "-x", "-n2")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
