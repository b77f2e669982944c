"""An agent with its own state file may stop or not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference.stop_check import StopAnswer, decide_stop

MET = {"met": True, "verification": "execution output"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, StopAnswer(False, "there are no criteria yet")),
        ({"criteriaStatus": {}, "exit_signal": True}, StopAnswer(False, "there are no criteria yet")),
        ({"criteriaStatus": {"a": True, "b": MET}, "exit_signal": True}, StopAnswer(True, "all criteria are met")),
        ({"criteriaStatus": {"a": True, "b": MET}}, StopAnswer(False, "all criteria are met: set exit_signal")),
        ({"criteriaStatus": {"a": False, "b": MET, "c": {"met": False}}}, StopAnswer(False, "unmet: a, c")),
        (
            {"criteriaStatus": {"a": True, "b": {"met": True, "verification": "assumption"}}, "exit_signal": True},
            StopAnswer(False, "met by assumption only: b"),
        ),
        ({"criteriaStatus": {"a": False}, "status": "cancelled"}, StopAnswer(True, "the loop is cancelled")),
        (
            {"criteriaStatus": {"a": False}, "circuitBreaker": {"stuckCount": 5}},
            StopAnswer(True, "the same criteria were unmet 5 times in a row", is_final=True),
        ),
        ({"criteriaStatus": {"a": False}, "circuitBreaker": {"stuckCount": 4}}, StopAnswer(False, "unmet: a")),
    ],
)
def test_the_state_decides_whether_an_agent_may_stop(state: dict[str, Any], expected: StopAnswer) -> None:
    """Vector 11."""
    assert decide_stop(json.dumps(state)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, StopAnswer(True, "there is no loop")),
        ("{", StopAnswer(True, "invalid state file", is_final=True)),
        ("[" * 200_000, StopAnswer(True, "invalid state file", is_final=True)),
    ],
)
def test_an_unreadable_state_file_lets_the_agent_stop(text: str | None, expected: StopAnswer) -> None:
    """Vector 11."""
    assert decide_stop(text) == expected


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["status", "criteriaStatus", "circuitBreaker", "stuckCount", "met", "verification", "exit_signal"]), inner), max_leaves=8))  # fmt: skip
def test_there_is_always_an_answer(state: Any) -> None:
    assert isinstance(decide_stop(json.dumps(state)), StopAnswer)
