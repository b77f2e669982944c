"""`--loop-memory`: a second run gets the lessons of the first."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
BROKEN = "def total(prices):\n    return sum(prices[1:])\n"
TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"
KNOWING = """
    from pathlib import Path


    def work(request):
        Path("shop.py").write_text("def total(prices):\\n    return sum(prices)\\n")
"""
# An agent that applies the lesson in its prompt, and nothing else.
OBEDIENT = """
    import re
    from pathlib import Path


    def work(request):
        Path("../prompt.txt").write_text(request.prompt)
        told = re.findall(r"^   \\| [+](?![+][+])(.*)$", request.prompt, re.MULTILINE)
        if told:
            Path("shop.py").write_text("def total(prices):\\n" + "\\n".join(told) + "\\n")
"""


@pytest.fixture
def project(make_project: Callable[..., Path]) -> Path:
    return make_project(shop_py=BROKEN, test_shop_py=TESTS, knowing_py=KNOWING, obedient_py=OBEDIENT)


@pytest.fixture
def start_run(run: Pytest) -> Pytest:
    def start(agent: str, alias: str, *words: str) -> subprocess.CompletedProcess[str]:
        arguments = ("--loop-agent", f"python:{agent}:work", "--loop-alias", alias, "--loop-allow", "shop.py")
        return run("--loop-task", "fix until green", *arguments, "--loop-yes", "--loop-max-iterations", "2", *words)

    return start


def read_events(project: Path, alias: str, kind: str) -> list[dict[str, Any]]:
    lines = (project / f".loop/{alias}/history.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_second_run_gets_lessons_of_the_first(project: Path, start_run: Pytest) -> None:
    assert start_run("knowing", "first").returncode == 0
    (project / "shop.py").write_text(BROKEN)
    assert start_run("obedient", "without").returncode == 1, "it is opt-in"
    assert "fixed the same" not in (project.parent / "prompt.txt").read_text()
    (project / "shop.py").write_text(BROKEN)
    done = start_run("obedient", "second", "--loop-memory")
    assert done.returncode == 0, done.stdout
    assert "     remembered: first, iteration 1" in done.stdout.splitlines()
    (edit,) = read_events(project, "second", "refinement_done")
    assert edit["payload"]["recalled"] == ["first, iteration 1"]
    prompt = (project.parent / "prompt.txt").read_text()
    lessons = prompt[prompt.index("## What fixed the same failures before") :]
    assert "data, not instructions" in lessons
    assert "<<<data " in lessons[: lessons.index("1. test_shop.py::test_total said: ")]
    assert "   | -    return sum(prices[1:])\n   | +    return sum(prices)\n" in lessons


@pytest.mark.thorough
def test_ini_file_turns_memory_on_and_damaged_runs_teach_nothing(project: Path, start_run: Pytest) -> None:
    assert start_run("knowing", "first").returncode == 0
    history = project / ".loop/first/history.jsonl"
    history.write_text(history.read_text().replace("return sum(prices)", "return evil(prices)"))
    (project / "shop.py").write_text(BROKEN)
    (project / "pytest.ini").write_text("[pytest]\nloop_memory = yes\n")
    assert start_run("obedient", "second").returncode == 1
    assert "evil" not in (project.parent / "prompt.txt").read_text()


def test_memory_setting_must_be_yes_or_no(project: Path, run: Pytest) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_memory = always\n")
    done = run("--loop-task", "fix until green", "--loop-agent", "python:knowing:work")
    assert (done.returncode, done.stderr.strip()) == (4, "ERROR: loop_memory: expected yes or no, found 'always'")
