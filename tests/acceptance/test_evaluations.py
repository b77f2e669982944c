"""What a run spares itself between evaluations, and what it never does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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
def project(pytester: pytest.Pytester, rule_file: Write) -> pytest.Pytester:
    rule_file(RULES, "guide.rules.yaml")
    (pytester.path / "count.py").write_text(COUNT)
    (pytester.path / "data.txt").write_text("good")
    return pytester


def loop(project: pytest.Pytester, agent: str, *words: str) -> pytest.RunResult:
    (project.path / "agents.py").write_text(agent)
    fixed = ("--loop-task", "fix until green", "--loop-agent", "python:agents:work", "--loop-yes")
    return project.runpytest_subprocess(*fixed, *words)


def judged(project: pytest.Pytester) -> list[dict[str, Any]]:
    lines = (project.path / ".loop/fix-until-green/history.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["payload"] for event in events if event["event"] == "evaluation_done"]


WRITER = """
    from pytest_loop import AgentReply

    def work(request):
        return AgentReply(text="# Guide" if request.iteration >= {turns} else f"{{request.step}} {{request.iteration}}")
"""


def writer(turns: int) -> str:
    return "\n".join(line.removeprefix("    ") for line in WRITER.format(turns=turns).splitlines())


@WORKERS_IF_THOROUGH
def test_a_rule_that_looks_at_nothing_new_is_not_run_again(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = loop(project, writer(2), "--loop-rules", "guide.rules.yaml", "-v", *workers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["*REUSED (fail, A)*"])
    calls = (project.path / "calls").read_text()
    assert (len(calls), len(judged(project))) == (2, 3)  # the first evaluation, and the one that decides


@pytest.mark.measured
def test_a_failure_is_kept_too_until_something_changes(project: pytest.Pytester) -> None:
    (project.path / "data.txt").write_text("bad")
    agent = writer(1) + "\n" + "from pathlib import Path\nwrite = work\n"
    agent += "def work(request):\n    if request.iteration == 2: Path('data.txt').write_text('good')\n    return write(request)\n"
    result = loop(project, agent, "--loop-rules", "guide.rules.yaml", "-q")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    calls = (project.path / "calls").read_text()
    assert len(calls) == 3  # the first evaluation, the third, and that one as a whole
    assert [one["passed"] for one in judged(project)] == [False, False, True]


def test_who_wants_no_reuse_gets_none(project: pytest.Pytester) -> None:
    result = loop(project, writer(2), "--loop-rules", "guide.rules.yaml", "-q", "--loop-no-reuse")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert "reused" not in result.stdout.str()
    assert len((project.path / "calls").read_text()) == len(judged(project))


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
FIXER = """
    from pathlib import Path

    def work(request):
        fixed = ["slow", "broken", "late"][: request.iteration + 1]
        names = ("slow", "broken", "late")
        Path("shop.py").write_text("".join(f"def {name}(): return {int(name in fixed)}\\n" for name in names))
"""


@WORKERS_IF_THOROUGH
def test_an_evaluation_that_cannot_pass_may_end_early(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(test_shop=TESTS, shop="def slow(): return 1\ndef broken(): return 0\ndef late(): return 0\n")
    agent = "\n".join(line.removeprefix("    ") for line in FIXER.splitlines())
    result = loop(pytester, agent, "-q", "--loop-stop-early", *workers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert [one["passed"] for one in judged(pytester)] == [False, False, True]
    assert judged(pytester)[-1]["total"] == 3
    if not workers:
        # two looks before the first edit, and evaluations that came so far: the first two ended before
        assert len((pytester.path / "late").read_text()) < 2 + len(judged(pytester))


def test_a_run_that_is_told_to_stop_at_the_first_failure_goes_on(pytester: pytest.Pytester) -> None:
    """`-x` among workers ends a session as an interrupt does."""
    pytester.makepyfile(test_shop=TESTS, shop="def slow(): return 1\ndef broken(): return 0\ndef late(): return 0\n")
    agent = "\n".join(line.removeprefix("    ") for line in FIXER.splitlines())
    result = loop(pytester, agent, "-q", "-x", "-n2")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
