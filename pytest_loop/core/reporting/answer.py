"""The answer of a person to a stopped run, as the payload of the event that reopens it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_loop.core.events.run_payloads import Answered, LimitsRaised
from pytest_loop.core.machine.budgets import get_budgets, is_used_up
from pytest_loop.core.model.escalation import Alternative
from pytest_loop.core.model.run_state import UNCHANGED_FILES, RunState
from pytest_loop.core.model.vocabulary import Reason, parse_reason
from pytest_loop.core.reporting.escalation import ask_question, list_alternatives, list_value_alternatives

YES = ("y", "yes")
# The least to add to a budget: the first session after a pause is cold, and may take longer than those before it.
_MIN_ROOM = {"seconds": 60}
_LIMIT_FIELDS = {"usd": "usd", "tokens": "tokens", "seconds": "max_completed_phase_seconds"}


def build_answer(
    state: RunState, text: str, unseal: Sequence[str] = (), limits: Mapping[str, Any] | None = None
) -> LimitsRaised:
    """Return the payload of an answer; it raises used-up limits for one more iteration, unless `limits` sets them.

    After UNCONFIRMED, a plain yes confirms the rules that wait for confirmation; if none does, the run reopens
    unchanged.
    """
    if state.stop.reason == Reason.UNCONFIRMED.value and text.strip().lower() in YES:
        assumed = state.evaluation.assumptions if state.evaluation else ()
        confirmed = (*assumed, *((UNCHANGED_FILES,) if state.has_empty_edit else ()))
        return Answered(text=text, question=_ask(state), confirmed=confirmed) if confirmed else LimitsRaised()
    room = {**make_room(state), **(limits or {})}
    return Answered(text=text, question=_ask(state), unseal=tuple(unseal), **room)


def find_alternative(state: RunState, text: str) -> Alternative | None:
    """Return the alternative that a text names by its number, or None if it is an answer in words."""
    alternatives = _list_offered(state)
    number = text.strip().rstrip(".")
    is_listed = number.isdecimal() and 0 < int(number) <= len(alternatives)
    return alternatives[int(number) - 1] if is_listed else None


def _list_offered(state: RunState) -> tuple[Alternative, ...]:
    """Return the alternatives of the current question, or of one that was answered right before a crash."""
    if state.is_over:
        return list_alternatives(state, parse_reason(state.stop.reason))
    alternatives = list_value_alternatives(state) if state.is_answered else ()
    is_chosen = any(alternative.text == state.signals.answers[-1].text for alternative in alternatives)
    return alternatives if is_chosen else ()


def is_recorded(state: RunState, text: str) -> bool:
    """Return whether the run has recorded this answer already and crashed before its next evaluation."""
    alternative = find_alternative(state, text)
    answer = alternative.text if alternative else text.strip()
    return not state.is_over and state.is_answered and state.signals.answers[-1].text == answer


def make_room(state: RunState) -> dict[str, Any]:
    """Return new values for limits that are used up: one more iteration, or the mean cost of an iteration more."""
    room: dict[str, Any] = {}
    if state.iteration >= state.max_iterations:
        room["max_iterations"] = state.iteration + 1
    for name, (used, limit) in get_budgets(state).items():
        if used is not None and is_used_up(used, limit):
            amount = used + max(used / state.iteration, _MIN_ROOM.get(name, 0))
            room[_LIMIT_FIELDS[name]] = amount if name == "usd" else math.ceil(amount)
    return room


def _ask(state: RunState) -> str:
    return ask_question(state, parse_reason(state.stop.reason)) if state.is_over else ""
