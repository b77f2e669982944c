"""Whether an agent that keeps a state file of its own (`.loop/state.json`) may stop."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pytest_loop.inference.data_files import get_mapping

STUCK = 5
_OVER = ("completed", "cancelled")


@dataclass(frozen=True)
class StopAnswer:
    """Whether it may stop, and why or what is left; `is_final` where nothing else needs to be asked."""

    may_stop: bool
    reason: str
    is_final: bool = False


def decide_stop(text: str | None) -> StopAnswer:
    """The answer for the text of a state file; without one, or with one that cannot be read, nothing is in the way."""
    if text is None:
        return StopAnswer(True, "there is no loop")
    try:
        state = get_mapping(json.loads(text))
    except (ValueError, RecursionError):
        return StopAnswer(True, "invalid state file", is_final=True)
    if state.get("status") in _OVER:
        return StopAnswer(True, f"the loop is {state['status']}")
    count = get_mapping(state, "circuitBreaker").get("stuckCount")
    if isinstance(count, int) and count >= STUCK:
        return StopAnswer(True, f"the same criteria were unmet {count} times in a row", is_final=True)
    return _judged(get_mapping(state, "criteriaStatus"), state.get("exit_signal") is True)


def _judged(criteria: Mapping[str, Any], is_signalled: bool) -> StopAnswer:
    """Everything is met, none of it by assumption, and the agent says so; no criteria at all are not met."""
    if not criteria:
        return StopAnswer(False, "there are no criteria yet")
    if unmet := [name for name, value in criteria.items() if not _is_met(value)]:
        return StopAnswer(False, f"unmet: {', '.join(unmet)}")
    if assumed := [name for name, value in criteria.items() if get_mapping(value).get("verification") == "assumption"]:
        return StopAnswer(False, f"met by assumption only: {', '.join(assumed)}")
    return (
        StopAnswer(True, "all criteria are met")
        if is_signalled
        else StopAnswer(False, "all criteria are met: set exit_signal")
    )


def _is_met(value: Any) -> bool:
    """A criterion is a plain truth, or one with the way it was verified."""
    return value is True or get_mapping(value).get("met") is True


def stuck_count(unmet: Sequence[Collection[str]]) -> int:
    """How often the unmet criteria were the same as the time before, up to now."""
    count = 0
    for now, before in pairwise(frozenset(one) for one in reversed(unmet)):
        if before != now or not now:
            break
        count += 1
    return count
