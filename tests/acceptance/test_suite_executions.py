"""How often each test runs from red to green: before the first edit, in the clean room, and again if it failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

CONFTEST = """
    import os

    def pytest_runtest_call(item):
        with open(os.environ["EXECUTIONS"], "a") as file:
            file.write(item.name + "\\n")
"""
AGENT = """
    from pathlib import Path
    from pytest_loop import AgentReply

    def work(request):
        Path("shop.py").write_text("def add(a, b):\\n    return a + b\\n")
        return AgentReply(text="fixed")
"""
TESTS = """
    from shop import add

    def test_sum():
        assert add(2, 3) == 5

    def test_nothing():
        assert add(0, 0) == 0
"""
START = ("--loop-task", "fix until green", "--loop-agent", "python:agents:work", "--loop-yes")


@pytest.fixture
def shop(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    files = {"tests/conftest.py": CONFTEST, "agents.py": AGENT, "tests/test_shop.py": TESTS}
    (pytester.path / "tests").mkdir()
    for name, text in files.items():
        (pytester.path / name).write_text(dedent(text))
    (pytester.path / "shop.py").write_text("def add(a, b):\n    return a - b\n")
    monkeypatch.setenv("EXECUTIONS", str(tmp_path / "executions"))
    pytester.makeini("[pytest]\npythonpath = .\ntestpaths = tests")
    return pytester


def count_executions(shop: pytest.Pytester, path: Path, *arguments: str) -> Counter[str]:
    result = shop.runpytest_subprocess(*START, *arguments)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    return Counter(path.read_text().split())


def test_suite_runs_twice_and_what_failed_is_repeated(shop: pytest.Pytester, tmp_path: Path) -> None:
    counts = count_executions(shop, tmp_path / "executions")
    assert counts["test_nothing"] == 2, "the baseline and the clean room"
    assert counts["test_sum"] == 4, "also once more before the first edit, and alone before the clean room"


@pytest.mark.thorough
def test_second_baseline_can_be_asked_for(shop: pytest.Pytester, tmp_path: Path) -> None:
    assert count_executions(shop, tmp_path / "executions", "-o", "loop_baseline_runs=2")["test_nothing"] == 3


SECOND_ATTEMPT_AGENT = """
    from pathlib import Path
    from pytest_loop import AgentReply

    def work(request):
        operator = "*" if "*" not in Path("shop.py").read_text() else "+"
        Path("shop.py").write_text(f"def add(a, b):\\n    return a {operator} b\\n")
        return AgentReply(text="tried")
"""


def test_long_suite_is_not_repeated_while_a_failure_remains(shop: pytest.Pytester, tmp_path: Path) -> None:
    (shop.path / "agents.py").write_text(dedent(SECOND_ATTEMPT_AGENT))
    slow = "\n\ndef test_slow():\n    import time\n    time.sleep(3.1)\n"
    known = "\n\nimport pytest\n\n@pytest.mark.skip\ndef test_later(): pass\n\n@pytest.mark.xfail\ndef test_known(): assert 0\n"
    (shop.path / "tests/test_shop.py").write_text(dedent(TESTS) + slow + known)
    (shop.path / "tax.py").write_text("RATE = 2\n\ndef tax(price):\n    return RATE * price\n")
    (shop.path / "tests/test_tax.py").write_text("from tax import tax\n\ndef test_tax():\n    assert tax(1) == 2\n")
    counts = count_executions(shop, tmp_path / "executions", "--loop-affected")
    assert counts["test_slow"] == counts["test_tax"] == 2, "the baseline and the clean room"
    assert counts["test_nothing"] == 4, "and after each edit of a file that it executes"
    assert counts["test_sum"] == 5, "twice before the first edit, alone after each attempt, and in the clean room"
