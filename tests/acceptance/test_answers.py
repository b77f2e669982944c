"""A stopped run is answered: the answer is in the next prompt and in the history, and the run goes on."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import MakeProject, Pytest

RULES = """\
    artifact: notes.md
    rules:
      - {id: a.words.hello, description: It greets, check: {contains: hello}}
      - {id: a.no.secret, description: It has a password, must_not: true, check: {contains: "password="}}
"""
# Writes what the answer says, and before that what the first words of the task say.
WRITER = """\
    from pathlib import Path

    import pytest_loop


    def work(request):
        Path("../prompt.txt").write_text(request.prompt)
        if "Answer: say hello" in request.prompt:
            return "hello\\n"
        task = request.prompt.partition("## Task\\n")[2].partition("\\n")[0]
        if "impossible" in task:
            return pytest_loop.AgentReply(blocked={"rule": "a.words.hello", "reason": "nothing greets"}, text="nothing")
        if "secret" in task:
            return "password=1\\n"
        if "broken" in task:
            return None
        if "dear" in task:
            return pytest_loop.AgentReply(text="try\\n", usage={"cost_usd": 30})
        return f"try {request.iteration}\\n"
"""
LOGIN = """\
    from shop import decode


    def test_token():
        assert decode(123) == {"id": 123}
"""
FIXER = """\
    from pathlib import Path


    def work(request):
        answers = request.prompt.partition("## Answers of the user")[2]
        if "change the expectation" in answers:
            path = Path("test_login.py")
            path.write_text(path.read_text().replace("123}", "'123'}"))
        elif "change the code" in answers:
            path = Path("shop.py")
            path.write_text(path.read_text().replace("str(user)", "user"))
        else:
            with Path("shop.py").open("a") as file:
                file.write(f"# try {request.iteration}\\n")
"""
START = ("--loop-rules=notes.rules.yaml", "--loop-agent=python:writer:work", "--loop-alias=notes", "--loop-yes")


@pytest.fixture
def project(make_project: MakeProject) -> Path:
    return make_project(
        notes__rules_yaml=RULES,
        writer_py=WRITER,
        shop_py="def decode(user):\n    return {'id': str(user)}\n",
        test_login_py=LOGIN,
        fixer_py=FIXER,
    )


def read_events(project: Path, alias: str = "notes") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / f".loop/{alias}/history.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("task", "more", "reason"),
    [
        ("write the impossible", (), "blocked"),
        pytest.param("write a secret", (), "must_not", marks=pytest.mark.thorough),
        pytest.param("write broken notes", (), "phase_error", marks=pytest.mark.thorough),
        pytest.param("write notes", ("-o", "loop_stop_when=stuck 2"), "stuck", marks=pytest.mark.thorough),
        pytest.param("write notes", ("-o", "loop_auto_retry_on_test_fail=no"), "no_auto_retry", marks=pytest.mark.thorough),
        pytest.param("write notes", ("--loop-max-iterations=1",), "iteration_limit", marks=pytest.mark.thorough),
        pytest.param("write dear notes", (), "budget_exceeded", marks=pytest.mark.thorough),
    ],
)  # fmt: skip
def test_answered_run_goes_on_to_success(
    project: Path, run: Pytest, task: str, more: tuple[str, ...], reason: str
) -> None:
    stopped = run("--loop-task", task, *START, *more)
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert "answer: pytest-loop answer TEXT --run notes" in stopped.stdout
    done = run("--loop-resume", "--loop-answer", "say hello", "-q", "--loop-json=result.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"notes continues after {reason}\n")
    assert "answered: say hello\n" in done.stdout
    kinds = [event["event"] for event in read_events(project)]
    assert kinds.index("answered") == kinds.index("failed" if reason == "phase_error" else "stopped") + 1
    result = json.loads((project / "result.json").read_text())
    assert (result["status"], [answer["text"] for answer in result["answers"]]) == ("completed", ["say hello"])


@pytest.mark.thorough
def test_expectation_is_changed_where_a_person_decides_so(project: Path, run: Pytest) -> None:
    """The test is sealed until the answer allows an edit of it, and its new expectation is for a person to review."""
    start = ("--loop-task=fix until green", "--loop-agent=python:fixer:work", "--loop-alias=green", "--loop-yes")
    stopped = run(*start, "-o", "loop_same_error=2", "test_login.py")
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert "  2. {'id': '123'} is right: change the expectation in test_login.py\n" in stopped.stdout
    assert "+ # try 1\n" in stopped.stdout
    end = read_events(project, "green")[-1]["payload"]["decision"]
    assert (end["action"], end["iteration"], len(end["context"]["attempts_summary"])) == ("escalate", 2, 2)
    assert end["context"]["attempts_summary"][0].endswith("assert {'id': '123'} == {'id': 123}")
    assert "+# try 1" in end["context"]["diff"]
    done = run("--loop-resume", "--loop-answer=2", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict MONITOR: it passes, and an answer allowed edits of test_login.py" in done.stdout
    assert "'123'}" in (project / "test_login.py").read_text()


def test_question_at_a_terminal_is_answered_at_once(project: Path) -> None:
    words = [word for word in START if word != "--loop-yes"]
    command = [sys.executable, "-m", "pytest", "--loop-task=write notes", *words, "--loop-max-iterations=1"]
    command += ["-o", "loop_on_stop=no-such-program"]
    ours, theirs = pty.openpty()
    os.write(ours, b"y\ny\nsay hello\n\x04")
    try:
        done = subprocess.run(command, cwd=project, stdin=theirs, capture_output=True, text=True, timeout=120)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.stdout.index("loop_on_stop: cannot run 'no-such-program'") < done.stdout.index("your answer")
    assert "your answer (empty leaves the run as it is): notes continues after iteration_limit\n" in done.stdout
    assert "raised: max_iterations 2\n" in done.stdout
    assert [event["event"] for event in read_events(project)].count("answered") == 1
    assert "Answer: say hello" in (project.parent / "prompt.txt").read_text()
