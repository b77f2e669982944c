"""The decision after an evaluation: proceed, retry with feedback, escalate to a person, or hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_loop.core.events.run_decision import Action, EscalationContext, Feedback, RunDecision
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_state import UNCHANGED_FILES, RunState
from pytest_loop.core.model.vocabulary import Reason
from pytest_loop.core.reporting.escalation import ask_question, describe_pattern, list_alternatives, render_attempt
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import format_count

MAX_FEEDBACK_ITEMS = 5
MAX_ITEM_LENGTH = 200


def decide(state: RunState, reason: Reason | None) -> RunDecision:
    """Return what follows from an evaluation: proceed, retry with feedback, escalate to a person, or hold."""
    if reason is None and state.is_ready_for_b:
        return _make_decision(state, Action.PROCEED, message="phase A passes: phase B decides")
    if reason is None:
        return _make_decision(state, Action.RETRY, iteration=state.iteration + 1, feedback=_make_feedback(state))
    if find_row(reason).is_success:
        return _make_decision(state, Action.PROCEED, message=f"done: {reason.value}")
    question = ask_question(state, reason)
    is_last = state.is_review_pending and state.iteration >= state.max_iterations
    if reason is Reason.UNCONFIRMED and not is_last:
        return _make_decision(state, Action.HOLD, waiting_for=_list_awaited_answers(state), question=question)
    context = EscalationContext(
        attempts_summary=tuple(render_attempt(attempt, has_message=True) for attempt in state.progress.attempts),
        pattern_detected=describe_pattern(state),
    )
    alternatives = list_alternatives(state, reason)
    return _make_decision(
        state,
        Action.ESCALATE,
        iteration=state.iteration,
        context=context,
        question=question,
        **({"alternatives": alternatives} if alternatives else {}),
    )


def _make_decision(state: RunState, action: Action, **fields: Any) -> RunDecision:
    return RunDecision(action=action, task_id=state.task_alias, **fields)


def _list_awaited_answers(state: RunState) -> tuple[str, ...]:
    """Return the rules, the review and the empty edit that a person has to confirm."""
    assumed = state.evaluation.assumptions if state.evaluation else ()
    others = {"review": state.is_review_pending, UNCHANGED_FILES: state.has_empty_edit}
    return (*assumed, *(name for name, is_awaited in others.items() if is_awaited))


def _make_feedback(state: RunState) -> Feedback:
    """Return short instructions for the next iteration: first about rules, then about the review."""
    evaluation, review = state.evaluation, state.signals.review
    complaints = (evaluation.failed or evaluation.warnings) if evaluation else ()
    items = [
        shorten(f"{complaint.id}: {complaint.message}", MAX_ITEM_LENGTH)
        for complaint in complaints[:MAX_FEEDBACK_ITEMS]
    ]
    items += [shorten(review.feedback, MAX_ITEM_LENGTH)] if review and review.feedback else []
    summary = (
        f"{format_count(len(complaints), 'rule')} to fix" if complaints else "nothing fails, and yet it is not done"
    )
    return Feedback(
        summary="the review asks for something else" if state.is_rejected else summary,
        actionable_items=tuple(_limit_items(items, state.setup.control.feedback_max_length)),
        priority="high" if evaluation and evaluation.failed else "medium" if state.is_rejected else "low",
    )


def _limit_items(items: Iterable[str], room: int) -> Iterator[str]:
    """Yield the first items that fit into `room` characters, and at least the first one, shortened."""
    for number, item in enumerate(items):
        if number and len(item) > room:
            return
        yield shorten(item, room)
        room -= len(item)
