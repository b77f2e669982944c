"""The checks that an agent has made of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_loop.agents.answers import PrepareAnswer, PreparedCheck, validate_answer
from pytest_loop.agents.protocol import AgentError, AgentReply
from pytest_loop.rules.checks.registry import InvalidCheckError, build_check


def prepared(reply: AgentReply, wanted: Sequence[str]) -> dict[str, list[Any]]:
    """The checks by rule; raises `AgentError` for one that cannot be understood, and where a rule has none."""
    found: dict[str, list[Any]] = {}
    for one in validate_answer(reply, PrepareAnswer).checks:
        found.setdefault(one.rule_id, []).append(_usable(one.check if one.check is not None else _foreign(one)))
    missing = [name for name in wanted if name not in found]
    if missing:
        raise AgentError(f"expected a check for every rule, found none for {', '.join(missing)}")
    return found


def _usable(raw: Any) -> Any:
    """A check that an agent made, if it can be understood."""
    try:
        build_check(raw)
    except InvalidCheckError as error:
        raise AgentError(f"expected a check, found one that is none: {error}") from None
    return raw


def _foreign(one: PreparedCheck) -> dict[str, Any]:
    """The form of other loop tools, in which the check stands beside the rule's id."""
    return dict(one.model_extra or {})
