"""A judging session in one process: plan, score, exit code, and its messages to a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.history import SessionHistory
from pytest_loop.session.judge import get_session
from pytest_loop.session.result import SessionResult, assess_session

WriteRules = Callable[..., Path]
RULES = """
    artifact: doc.md
    rules:
      - {id: a.title, description: Title, check: {contains: Title}}
      - {id: a.end, description: End, check: {contains: The end}}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: WriteRules) -> pytest.Pytester:
    write_rule_file(RULES)
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


def test_one_session_object_serves_a_process(project: pytest.Pytester) -> None:
    config = project.parseconfigure()
    assert get_session(config) is get_session(config)


def test_the_session_of_no_run_has_no_order_and_no_channel(project: pytest.Pytester) -> None:
    session = get_session(project.parseconfigure())
    assert (session.order, session.channel, session.is_worker) == (None, None, False)


def test_the_criteria_decide_the_exit_code(project: pytest.Pytester) -> None:
    assert project.runpytest("-p", "no:cacheprovider").ret == pytest.ExitCode.TESTS_FAILED
    (project.path / "doc.md").write_text("# Title\n\nThe end\n")
    assert project.runpytest("-p", "no:cacheprovider").ret == pytest.ExitCode.OK


def test_a_known_failure_is_no_regression(project: pytest.Pytester) -> None:
    project.runpytest("--loop-save-baseline", "saved.json")
    assert project.runpytest("--loop-baseline", "saved.json").ret == pytest.ExitCode.OK
    (project.path / "doc.md").write_text("The end\n")
    assert project.runpytest("--loop-baseline", "saved.json").ret == pytest.ExitCode.TESTS_FAILED


def test_a_baseline_that_cannot_be_loaded_is_a_usage_error(project: pytest.Pytester) -> None:
    result = project.runpytest("--loop-baseline", "missing.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--loop-baseline: cannot use *missing.json*"])


def run_ordered(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, order: SessionOrder) -> SessionResult:
    """Run a session in this process as a run would, and return what it sent."""
    path = project.path / "order.json"
    path.write_text(order.model_dump_json())
    read_end, write_end = os.pipe()
    key_end, key_entry = os.pipe()
    os.write(key_entry, b"key")
    os.close(key_entry)
    monkeypatch.setenv("PYTEST_LOOP_SESSION", f"{write_end} {key_end} {path}")
    project.runpytest_inprocess("-p", "no:cacheprovider")
    os.close(write_end)
    result = SessionResult()
    result.read_messages(read_end, b"key")
    return result


def test_a_session_of_a_run_sends_its_plan_and_evidence(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile("def test_it():\n    pass\n")
    result = run_ordered(project, monkeypatch, SessionOrder(canary="token"))
    outcomes = {nodeid.partition("::")[2]: evidence.outcome for nodeid, evidence in result.evidence.items()}
    assert outcomes == {"a.title": Outcome.PASSED, "a.end": Outcome.FAILED, "test_it": Outcome.PASSED}
    assert result.plan is not None
    assert set(result.plan.items) == set(result.evidence)
    assert (result.canaries, result.exit_status) == ([True, True, True], 1)
    criteria, evaluation = assess_session(result, {}, lambda **_: None)
    assert len(criteria.rules) == 3
    assert not evaluation.passed


def test_a_session_of_a_run_stops_early_if_it_may(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    order = SessionOrder(can_stop_early=True, failed_before=("it.rules.yaml::a.end",))
    result = run_ordered(project, monkeypatch, order)
    assert list(result.evidence) == ["it.rules.yaml::a.end"], "what failed before comes first"


def test_a_session_of_a_run_reuses_evidence_of_unchanged_rules(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = SessionHistory()
    history.add(run_ordered(project, monkeypatch, SessionOrder()).evidence)
    order = history.extend_order(SessionOrder(can_reuse=True))
    assert json.loads(order.model_dump_json())["cached_evidence"]
    result = run_ordered(project, monkeypatch, order)
    assert result.has_reused_evidence
    (project.path / "doc.md").write_text("The end\n")
    assert not run_ordered(project, monkeypatch, order).has_reused_evidence
