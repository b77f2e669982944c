"""Replies, their usage and the errors of endings."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentReply, StopRequestedError, Watch, make_reply
from pytest_loop.core.model.run_state import Usage
from pytest_loop.processes.child import Ending


@pytest.mark.parametrize(
    "cost", [-1, -0.01, float("nan"), float("inf"), "0.5", "free", None, True, [1], {}, 10**400, 1e300]
)
def test_an_impossible_cost_is_unknown(cost: Any) -> None:
    assert AgentReply.model_validate({"usage": {"cost_usd": cost, "tokens": 5}}).usage == Usage(tokens=5)


@pytest.mark.parametrize("tokens", [-1, 1.5, float("nan"), "12", None, False, 10**400])
def test_impossible_tokens_are_unknown(tokens: Any) -> None:
    assert AgentReply.model_validate({"usage": {"tokens": tokens, "cost_usd": 0.0}}).usage == Usage(cost_usd=0.0)


@pytest.mark.parametrize("usage", [{}, None, 5, "much", {"other": 1}])
def test_missing_usage_is_unknown_and_not_zero(usage: Any) -> None:
    usage = AgentReply.model_validate({"usage": usage}).usage
    assert (usage.tokens, usage.cost_usd) == (None, None)


def test_plausible_usage_is_kept() -> None:
    assert AgentReply(usage=Usage(tokens=5, cost_usd=1)).usage == Usage(tokens=5, cost_usd=1.0)
    assert AgentReply.model_validate({"usage": {"tokens": 12.0}}).usage == Usage(tokens=12)


def test_a_reply_is_not_converted() -> None:
    reply = AgentReply(text="x", exit_signal=False)
    assert make_reply(reply) is reply
    assert make_reply(["a"], has_schema=True).data == ["a"]
    assert make_reply({}, has_schema=True).data == {}
    assert make_reply({"data": {"plan": []}}, has_schema=True).data == {"plan": []}


def test_each_ending_has_its_error_message() -> None:
    watch = Watch(timeout=2, silence=1.5)
    assert isinstance(watch.make_error("it", Ending.REQUEST), StopRequestedError)
    assert str(watch.make_error("it", Ending.DEADLINE)) == "it did not end within 2 s"
    assert str(watch.make_error("it", Ending.SILENCE)) == "it said nothing for 1.5 s"
    assert watch.should_continue()
    watch.on_output(b"nobody listens")
