"""Checks that an agent makes of sentences."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply
from pytest_loop.run.steps import parse_checks


def parse(*checks: dict[str, Any]) -> dict[str, list[Any]]:
    return parse_checks(AgentReply(data={"checks": list(checks)}), ["a.x.y"])


def test_checks_are_grouped_by_rule_in_both_forms() -> None:
    first, second = {"rule_id": "a.x.y", "check": {"contains": "blue"}}, {"rule_id": "a.x.y", "contains": "red"}
    assert parse(first, second) == {"a.x.y": [{"contains": "blue"}, {"contains": "red"}]}


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"rule_id": "a.x.y", "check": {"smells": "good"}}, "expected a check, found one that is none"),
        ({"rule_id": "a.x.z", "check": {"contains": "blue"}}, "expected a check for every rule, found none for a.x.y"),
    ],
)
def test_invalid_or_missing_check_is_an_error(check: dict[str, Any], message: str) -> None:
    with pytest.raises(AgentError, match=message):
        parse(check)
