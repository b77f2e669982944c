"""The checks that an agent made of the sentences among the rules."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from pytest_loop.core.model.rules import Value


class RuleChecks(Value):
    """The concrete checks that an agent made of one rule's sentence."""

    rule_id: str
    check: Any = None


class PreparedChecks(Value):
    """All prepared checks; keys of other tools are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    checks: tuple[RuleChecks, ...] = ()
