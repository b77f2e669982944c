"""The concrete checks that an agent makes of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_loop.agents.answers import PrepareAnswer, validate_answer
from pytest_loop.agents.protocol import AgentError, AgentReply
from pytest_loop.rules.checks.registry import InvalidCheckError, build_check


def parse_checks(reply: AgentReply, rules: Sequence[str]) -> dict[str, list[Any]]:
    """Return the checks of each rule; raise `AgentError` if one is invalid, or a rule has none."""
    checks: dict[str, list[Any]] = {}
    for answer in validate_answer(reply, PrepareAnswer).checks:
        # Other loop tools write the fields of the check beside the id of its rule.
        check = answer.check if answer.check is not None else dict(answer.model_extra or {})
        try:
            build_check(check)
        except InvalidCheckError as error:
            raise AgentError(f"expected a check, found one that is none: {error}") from None
        checks.setdefault(answer.rule_id, []).append(check)
    missing = [rule for rule in rules if rule not in checks]
    if missing:
        raise AgentError(f"expected a check for every rule, found none for {', '.join(missing)}")
    return checks
