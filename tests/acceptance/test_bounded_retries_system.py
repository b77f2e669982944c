"""Bounded retries, from start to end: a test result and a review lead to proceed, retry or escalate.

Its default of 3 iterations is the limit `--loop-max-iterations 3` here, where 4 is the default. "Proceed to the next
task" is the end of a run: one task is one run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_setup import IterationControl
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.reporting.decision import decide
from pytest_loop.inference.task_phrases import parse_task
from tests.acceptance.conftest import MakeProject, Pytest
from tests.core.scripted_run import ScriptedRun, make_rule


def test_triggers_are_understood() -> None:
    command = parse_task("pause the loop").loop_command
    assert command is not None
    assert command.name == "pause"
    assert parse_task("fix the login, stop after 3 cycles").iteration_limit == 3


def check(current: int, tests: str, review: str) -> dict[str, Any]:
    """Return the decision about an iteration, as the document's `iteration_check` asks for it, with a limit of 3."""
    run = ScriptedRun(make_rule(), max_iterations=3, task_alias="task-003")
    for number in range(1, current):
        run.evaluate("a.x.y", message=f"Expected {number}")
    run.evaluate(*(("a.x.y",) if tests == "fail" else ()), message="Expected: token to contain userId")
    if review != "pending":
        run.advance_to(Kind.STOPPED)
        run.record(Kind.REVIEW_DONE, status=review, feedback="userId is missing" if review == "reject" else "")
    data: dict[str, Any] = decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump()
    return data


@pytest.mark.parametrize(
    ("current", "tests", "review", "action"),
    [
        (1, "pass", "approve", "proceed"),
        (3, "pass", "approve", "proceed"),
        (1, "fail", "pending", "retry"),
        (2, "fail", "pending", "retry"),
        (2, "pass", "reject", "retry"),
        (3, "fail", "pending", "escalate"),
        (3, "pass", "reject", "escalate"),
    ],
)
def test_tests_and_review_decide(current: int, tests: str, review: str, action: str) -> None:
    decision = check(current, tests, review)
    assert (decision["action"], decision["task_id"]) == (action, "task-003")
    fields = {
        "proceed": {"message"},
        "retry": {"iteration", "feedback"},
        "escalate": {"iteration", "context", "question"},
    }
    assert decision.keys() == {"action", "task_id", *fields[action]}


@pytest.mark.parametrize(("tests", "item"), [("fail", "token to contain userId"), ("pass", "userId is missing")])
def test_retry_has_feedback_that_can_be_acted_on(tests: str, item: str) -> None:
    decision = check(2, tests, "pending" if tests == "fail" else "reject")
    assert decision["iteration"] == 3
    assert decision["feedback"].keys() == {"summary", "actionable_items", "priority"}
    assert item in decision["feedback"]["actionable_items"][0]


def test_settings_have_the_names_and_defaults_of_the_document() -> None:
    assert IterationControl().model_dump() == {
        "auto_retry_on_test_fail": True,
        "auto_retry_on_review_reject": True,
        "escalation_includes_diff": True,
        "feedback_max_length": 500,
    }


LOGIN = """\
    import jwt


    def test_login():
        assert jwt.decode(jwt.sign(123)) == {"userId": 123}
"""
# One step nearer in each iteration, and never there.
CODER = """\
    from pathlib import Path

    TOKENS = ("{'user': user}", "{'userId': str(user)}")


    def work(request):
        answers = request.prompt.partition("## Answers of the user")[2]
        token = "{'userId': user}" if "change the code" in answers else TOKENS[min(request.iteration, 2) - 1]
        Path("jwt.py").write_text(f"def sign(user):\\n    return {token}\\n\\n\\ndef decode(token):\\n    return token\\n")
"""


@pytest.fixture
def project(make_project: MakeProject) -> Path:
    jwt = "def sign(user):\n    return None\n\n\ndef decode(token):\n    return token\n"
    return make_project(jwt_py=jwt, test_login_py=LOGIN, coder_py=CODER)


@pytest.mark.thorough
def test_example_of_the_document_is_escalated_with_a_choice_and_continues_with_the_answer(
    project: Path, run: Pytest
) -> None:
    task = "implement the login until `pytest test_login.py` passes, stop after 3 cycles"
    done = run("--loop-task", task, "--loop-agent=python:coder:work", "--loop-alias=task-003", "--loop-yes", "-q", "--loop-json=out.json")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    decision = json.loads((project / "out.json").read_text())["decision"]
    assert (decision["action"], decision["task_id"], decision["iteration"]) == ("escalate", "task-003", 3)
    assert len(decision["context"]["attempts_summary"]) == 3
    assert decision["context"]["pattern_detected"]
    assert "+    return {'userId': str(user)}" in decision["context"]["diff"]
    assert "  1. {'userId': 123} is right: change the code\n" in done.stdout
    assert "  2. {'userId': '123'} is right: change the expectation" in done.stdout
    again = run("--loop-resume", "--loop-answer=1", "-q")
    assert again.returncode == 0, again.stdout + again.stderr
