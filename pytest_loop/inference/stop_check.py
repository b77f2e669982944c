"""Decide whether an agent with its own state file (`.loop/state.json`) may stop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pytest_loop.inference.data_files import get_mapping

MAX_STUCK_ROUNDS = 5
_ENDED_STATUSES = ("completed", "cancelled")


@dataclass(frozen=True)
class StopAnswer:
    """Whether the agent may stop, and why; if the answer `is_final`, no rules are checked after it."""

    may_stop: bool
    reason: str
    is_final: bool = False


def decide_stop(text: str | None) -> StopAnswer:
    """Decide by the text of a state file; without a readable one the agent may stop."""
    if text is None:
        return StopAnswer(True, "there is no loop")
    try:
        state = get_mapping(json.loads(text))
    except (ValueError, RecursionError):
        return StopAnswer(True, "invalid state file", is_final=True)
    if state.get("status") in _ENDED_STATUSES:
        return StopAnswer(True, f"the loop is {state['status']}")
    count = get_mapping(state, "circuitBreaker").get("stuckCount")
    if isinstance(count, int) and count >= MAX_STUCK_ROUNDS:
        return StopAnswer(True, f"the same criteria were unmet {count} times in a row", is_final=True)
    criteria = get_mapping(state, "criteriaStatus")
    if not criteria:
        return StopAnswer(False, "there are no criteria yet")
    if unmet := [name for name, value in criteria.items() if not _is_met(value)]:
        return StopAnswer(False, f"unmet: {', '.join(unmet)}")
    if assumed := [name for name, value in criteria.items() if get_mapping(value).get("verification") == "assumption"]:
        return StopAnswer(False, f"met by assumption only: {', '.join(assumed)}")
    is_signalled = state.get("exit_signal") is True
    return StopAnswer(is_signalled, f"all criteria are met{'' if is_signalled else ': set exit_signal'}")


def _is_met(value: Any) -> bool:
    """Return whether a criterion is met: `true`, or a mapping with `met: true`."""
    return value is True or get_mapping(value).get("met") is True
