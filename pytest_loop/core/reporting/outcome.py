"""What a run came to, in the words of the result file, the report and the escalation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from pytest_loop.core.machine.stop_reasons import breakers, budgets, is_ready_for_b, is_rejected, is_undone
from pytest_loop.core.model.run_state import HASH_SHOWN, Attempt, Event, Notebook, Opinion, Reason, RunState
from pytest_loop.core.model.vocabulary import known_reason
from pytest_loop.core.reporting.closing_verdict import verdict
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import format_count

FEEDBACK_ITEMS = 5
LONGEST_ITEM = 200
LONGEST_FEEDBACK = 500


class ArtifactStatus(str, Enum):
    """Whether the last evaluation speaks of the artifact as it is."""

    NOT_CREATED = "not_created"
    UNEVALUATED = "unevaluated"
    STALE = "stale"
    EVALUATED = "evaluated"


def artifact_status(state: RunState) -> ArtifactStatus:
    """Only an evaluated artifact has a final score."""
    if not state.artifact_hash:
        return ArtifactStatus.NOT_CREATED
    if state.evaluation is None:
        return ArtifactStatus.UNEVALUATED
    if state.evaluation.artifact_hash != state.artifact_hash[:HASH_SHOWN]:
        return ArtifactStatus.STALE
    return ArtifactStatus.EVALUATED


def distance_to_success(state: RunState) -> dict[str, Any] | None:
    """How far an unsuccessful run was from the threshold that measured it last; nothing where that is unknown."""
    one = state.evaluation
    if one is None or state.stop.passed or artifact_status(state) is not ArtifactStatus.EVALUATED:
        return None
    threshold = float(state.criteria.phase[one.phase].threshold)
    return {
        "threshold": threshold,
        "score": one.score,
        "gap": round(max(0.0, threshold - one.score), 6),
        "blocking": [failed.id for failed in one.failed],
        "rules_passed": one.passing,
        "rules_total": one.total,
    }


def budget_report(state: RunState, last_step: str = "") -> dict[str, Any]:
    """The figures of a stop by time: how much was used, and by how much it went over."""
    cap = state.max_completed_phase_seconds
    return {
        "completed_phase_seconds": round(state.completed_phase_seconds, 3),
        "max_completed_phase_seconds": cap,
        "overshoot_seconds": round(max(0.0, state.completed_phase_seconds - cap), 3) if cap is not None else None,
        "last_completed_step": state.last_completed_step or last_step,
    }


def decision(state: RunState, reason: Reason | None) -> dict[str, Any]:
    """What follows from an evaluation: proceed, retry with feedback, escalate to a person, or hold."""
    said: dict[str, Any]
    if reason is None and is_ready_for_b(state):
        said = {"action": "proceed", "message": "phase A passes: phase B decides"}
    elif reason is None:
        said = {"action": "retry", "iteration": state.iteration + 1, "feedback": _feedback(state)}
    elif reason.is_success:
        said = {"action": "proceed", "message": f"done: {reason.value}"}
    elif reason is Reason.UNCONFIRMED and not (_is_pending(state) and state.iteration >= state.max_iterations):
        said = {"action": "hold", "waiting_for": _waiting_for(state), "question": question(state, reason)}
    else:
        context = {
            "attempts_summary": [attempt_line(one) for one in state.attempts],
            "pattern_detected": pattern(state),
        }
        said = {"action": "escalate", "context": context, "question": question(state, reason)}
    return {**said, "task_id": state.task_alias}


def _waiting_for(state: RunState) -> list[str]:
    """What somebody has to say something about."""
    assumed = list(state.evaluation.assumptions) if state.evaluation else []
    return [*assumed, *(["review"] if _is_pending(state) else [])]


def _is_pending(state: RunState) -> bool:
    return state.review is not None and state.review.status is Opinion.PENDING


def _feedback(state: RunState) -> dict[str, Any]:
    """What to do next: what the rules say comes before what a person says, and all of it is short."""
    one = state.evaluation
    open_ = (one.failed or one.warnings) if one else ()
    said = [shorten(f"{each.id}: {each.message}", LONGEST_ITEM) for each in open_[:FEEDBACK_ITEMS]]
    wanted = [shorten(state.review.feedback, LONGEST_ITEM)] if state.review and state.review.feedback else []
    summary = f"{format_count(len(open_), 'rule')} to mend" if open_ else "nothing fails, and yet it is not done"
    return {
        "summary": "the review asks for something else" if is_rejected(state) else summary,
        "actionable_items": list(_within(LONGEST_FEEDBACK, [*said, *wanted])),
        "priority": "high" if one and one.failed else "medium" if is_rejected(state) else "low",
    }


def _within(most: int, items: Iterable[str]) -> Iterator[str]:
    """As many as there is room for, and at least one."""
    for number, item in enumerate(items):
        most -= len(item)
        if most < 0 and number:
            return
        yield item


def attempt_line(one: Attempt) -> str:
    """One attempt in one line: what it scored, what it changed, and what it left open."""
    verdict = "void" if one.void else "pass" if one.passed else "fail"
    said = [f"iteration {one.iteration}, phase {one.phase.value}: {one.score:.3g} {verdict}"]
    if one.mended or one.broken:
        said.append(f"{one.mended} mended, {one.broken} broken")
    if one.unmet:
        names = ", ".join(shorten(name, 80) for name in one.open[:3])
        said.append(f"open: {names}" + (f" and {one.unmet - 3} more" if one.unmet > 3 else ""))
    return "; ".join(said)


def pattern(state: RunState) -> str:
    """What the attempts have in common."""
    if is_rejected(state):
        return "rejected: every rule passes, and the review asks for something else"
    if len(state.attempts) < 2:
        return "one attempt only" if state.attempts else "nothing was judged"
    before, last = state.attempts[-2:]
    if last.failing and last.same_since < last.iteration:
        since = [one.since for one in last.failing.values()]
        how = "with the same message" if max(since) <= last.same_since else "in different ways"
        return f"same failure: the same rules fail for {last.iteration - last.same_since + 1} iterations, {how}"
    if is_undone(state):
        return "oscillation: edits undo each other"
    if last.artifact_hash == before.artifact_hash:
        return "no change: the last edit changed nothing"
    if last.mended and last.broken:
        return "moving failure: what is mended breaks something else"
    if last.broken:
        return "moving failure: edits break what passed before"
    return "partial gain: some rules were mended, others are left" if last.unmet else "nothing fails any more"


_QUESTIONS = {
    Reason.MUST_NOT: "How did the forbidden thing come about, and is it undone?",
    Reason.USER_STOP: "What should be different next time?",
    Reason.THRASHING: "Which of the two versions is right about {rule}?",
    **dict.fromkeys(
        (Reason.STAGNATION, Reason.QUALITY_PLATEAU, Reason.DIMINISHING_RETURNS),
        "Is {rule} worth more rounds, or is it good enough?",
    ),
    Reason.BUDGET_EXCEEDED: "Is the result worth a larger budget?",
    Reason.ITERATION_LIMIT: "Is another round worth it, or is {rule} asking for the wrong thing?",
    Reason.REGRESSION: "Is what was gained worth the cases that became worse?",
    Reason.PLATEAU: "Which approach has not been tried yet?",
    Reason.CALIBRATION: "What does the first case need to be run and judged?",
    Reason.PHASE_ERROR: "Why does the agent not answer as it should?",
}


def question(state: RunState, reason: Reason) -> str:
    """The one thing that a person has to answer."""
    one = state.evaluation
    if reason is Reason.BLOCKED and state.blocked:
        return shorten(
            f"Is the agent right that {state.blocked.rule} cannot be met ({state.blocked.reason})?", 2 * LONGEST_ITEM
        )
    if reason is Reason.UNCONFIRMED and one and one.assumptions:
        return f"Is it so: {shorten(', '.join(_described(state, name) for name in one.assumptions), LONGEST_ITEM)}?"
    if reason is Reason.UNCONFIRMED:
        return "The review is outstanding: is it done?"
    if state.review and is_rejected(state):
        return f"Is another round worth it for what the review asks ({shorten(state.review.feedback, LONGEST_ITEM)})?"
    first = next(iter((*one.failed, *one.warnings)), None) if one else None
    if one and one.is_clean and first is None and state.exit_signal is False:
        return "Every rule passes, and the agent says that it is not done: what is missing?"
    rule = shorten(first.id, LONGEST_ITEM) if first else "the rule that fails"
    return _QUESTIONS.get(reason, "What does the agent not know about {rule}?").replace("{rule}", rule)


def _described(state: RunState, name: str) -> str:
    rule = state.criteria.by_id.get(name)
    return f"{name} ({rule.description})" if rule and rule.description != name else name


def result(state: RunState, events: Sequence[Event], history: str) -> dict[str, Any]:
    """The result for machines."""
    return {
        "schema_version": 1,
        "run_id": state.run_id,
        "task_alias": state.task_alias,
        "status": state.status.value,
        "stop": state.stop.model_dump(),
        "iteration": state.iteration,
        "max_iterations": state.max_iterations,
        "phase": state.phase.value,
        "current_step": state.current_step.value,
        "threshold": float(state.criteria.phase[state.phase].threshold),
        "artifact_status": artifact_status(state).value,
        **_judged(state),
        "best": state.best.model_dump(include={"iteration", "score"}) if state.best else None,
        "distance_to_success": distance_to_success(state),
        "usage": {
            "tokens": state.usage.tokens,
            "cost_usd": state.usage.cost_usd,
            "seconds": round(state.completed_phase_seconds, 3),
        },
        "budgets": {name: {"used": used, "limit": limit} for name, (used, limit) in budgets(state).items()},
        "breakers": {name: {"times": times, "limit": limit} for name, (times, limit) in breakers(state).items()},
        "draft": {
            "clarity": state.manner.clarity,
            "shape": state.manner.shape,
            "workflow": state.manner.workflow,
            "reversibility": state.manner.reversal,
            "confirmed_by": state.manner.confirmed_by,
        },
        "review": state.review.model_dump(mode="json") if state.review else None,
        "verdict": verdict(state) if state.is_over else None,
        "decision": _last_decision(state, events),
        "updated_at": state.updated_at,
        "history": history,
        **({"workload": _workload(state.notebook)} if state.notebook else {}),
    }


def _workload(book: Notebook) -> dict[str, Any]:
    """An experiment: what passed at first and passes now, what was believed, and the cases that nobody has seen."""
    hidden = book.held_out(book.measurements[-1]) if book.measurements else None
    truths = {one.iteration: one.truth.value for one in book.judgements}
    return {
        "id": book.workload,
        "manifest": book.manifest,
        "mode": book.policy.mode,
        "cases": len(book.cases),
        "baseline": len(book.seen[0].passing) if book.seen else None,
        "passing": len(book.seen[-1].passing) if book.seen else None,
        "failing": sorted(book.seen[-1].failing) if book.seen else [],
        "not_measured": sorted(book.seen[-1].unmeasured) if book.seen else [],
        "hypotheses": [
            {"iteration": one.iteration, "theory": one.theory, "truth": truths.get(one.iteration, "untested")}
            for one in book.hypotheses
        ],
        "held_out": {"passing": hidden[0], "total": hidden[1]} if hidden else None,
    }


def _judged(state: RunState) -> dict[str, Any]:
    """What the last evaluation says; its score is the final one only if it speaks of this artifact in this phase."""
    one = state.evaluation
    if one is None:
        total = len(state.criteria.get_active_rules(state.phase))
        nothing: dict[str, Any] = {"failed": [], "warnings": [], "regressions": [], "void": False, "findings": []}
        return {"score": None, "last_evaluated_score": None, "rules": {"total": total, "passed": 0}, **nothing}
    is_final = artifact_status(state) is ArtifactStatus.EVALUATED and one.phase is state.phase
    return {
        "score": one.score if is_final else None,
        "last_evaluated_score": one.score,
        "rules": {"total": one.total or len(state.criteria.get_active_rules(one.phase)), "passed": one.passing},
        "failed": [failed.id for failed in one.failed],
        "warnings": [warning.id for warning in one.warnings],
        "regressions": list(one.regressions),
        "void": one.void,
        "findings": [finding.model_dump() for finding in one.findings],
    }


def _last_decision(state: RunState, events: Sequence[Event]) -> dict[str, Any] | None:
    if state.is_over:
        return decision(state, known_reason(state.stop.reason))
    found = next((event.payload["decision"] for event in reversed(events) if "decision" in event.payload), None)
    return found if isinstance(found, dict) else None
