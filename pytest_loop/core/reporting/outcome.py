"""The result of a run for machines and reports: its status, its distance to success, and the decision that follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    Action,
    EndPayload,
    EscalationContext,
    EvaluationDone,
    Feedback,
    ReviewDone,
    RunDecision,
)
from pytest_loop.core.machine.breakers import count_repetitions, is_undone
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH, Attempt, RunState
from pytest_loop.core.model.vocabulary import Reason, parse_reason
from pytest_loop.core.reporting.closing_verdict import build_verdict
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import format_count
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState

MAX_FEEDBACK_ITEMS = 5
MAX_ITEM_LENGTH = 200
MAX_FEEDBACK_LENGTH = 500


class ArtifactStatus(str, Enum):
    """Whether the last evaluation is about the artifact as it is."""

    NOT_CREATED = "not_created"
    UNEVALUATED = "unevaluated"
    STALE = "stale"
    EVALUATED = "evaluated"


def get_artifact_status(state: RunState) -> ArtifactStatus:
    """Return the status; only an evaluated artifact has a final score."""
    if not state.progress.artifact_hash:
        return ArtifactStatus.NOT_CREATED
    if state.evaluation is None:
        return ArtifactStatus.UNEVALUATED
    if state.evaluation.artifact_hash != state.progress.artifact_hash[:SHORT_HASH_LENGTH]:
        return ArtifactStatus.STALE
    return ArtifactStatus.EVALUATED


def compute_distance(state: RunState) -> dict[str, Any] | None:
    """Return how far an unsuccessful run is from its threshold; None if that is unknown."""
    evaluation = state.evaluation
    if evaluation is None or state.stop.passed or get_artifact_status(state) is not ArtifactStatus.EVALUATED:
        return None
    threshold = float(state.criteria.phase[evaluation.phase].threshold)
    return {
        "threshold": threshold,
        "score": evaluation.score,
        "gap": round(max(0.0, threshold - evaluation.score), 6),
        "blocking": [complaint.id for complaint in evaluation.failed],
        "rules_passed": evaluation.passing,
        "rules_total": evaluation.total,
    }


def report_budget(state: RunState) -> dict[str, Any]:
    """Return the figures of a stop by a budget, for its event."""
    cap = state.max_completed_phase_seconds
    return {
        "completed_phase_seconds": round(state.completed_phase_seconds, 3),
        "max_completed_phase_seconds": cap,
        "overshoot_seconds": round(max(0.0, state.completed_phase_seconds - cap), 3) if cap is not None else None,
        "last_completed_step": state.progress.last_completed_step,
    }


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
        attempts_summary=tuple(render_attempt(attempt) for attempt in state.progress.attempts),
        pattern_detected=describe_pattern(state),
    )
    return _make_decision(state, Action.ESCALATE, context=context, question=question)


def _make_decision(state: RunState, action: Action, **fields: Any) -> RunDecision:
    return RunDecision(action=action, task_id=state.task_alias, **fields)


def _list_awaited_answers(state: RunState) -> tuple[str, ...]:
    """Return the rules and reviews that a person has to answer."""
    assumed = state.evaluation.assumptions if state.evaluation else ()
    return (*assumed, *(("review",) if state.is_review_pending else ()))


def _make_feedback(state: RunState) -> Feedback:
    """Return what to do next: the rules come before the review, and everything is short."""
    evaluation, review = state.evaluation, state.signals.review
    complaints = (evaluation.failed or evaluation.warnings) if evaluation else ()
    items = [
        shorten(f"{complaint.id}: {complaint.message}", MAX_ITEM_LENGTH)
        for complaint in complaints[:MAX_FEEDBACK_ITEMS]
    ]
    items += [shorten(review.feedback, MAX_ITEM_LENGTH)] if review and review.feedback else []
    summary = (
        f"{format_count(len(complaints), 'rule')} to mend" if complaints else "nothing fails, and yet it is not done"
    )
    return Feedback(
        summary="the review asks for something else" if state.is_rejected else summary,
        actionable_items=tuple(_take_within(MAX_FEEDBACK_LENGTH, items)),
        priority="high" if evaluation and evaluation.failed else "medium" if state.is_rejected else "low",
    )


def _take_within(most: int, items: Iterable[str]) -> Iterator[str]:
    """Yield as many items as there is room for, and at least one."""
    for number, item in enumerate(items):
        most -= len(item)
        if most < 0 and number:
            return
        yield item


def render_attempt(attempt: Attempt) -> str:
    """Return one attempt in one line: its score, what it changed, and what it left open."""
    verdict = "void" if attempt.void else "pass" if attempt.passed else "fail"
    parts = [f"iteration {attempt.iteration}, phase {attempt.phase.value}: {attempt.score:.3g} {verdict}"]
    if attempt.mended or attempt.broken:
        parts.append(f"{attempt.mended} mended, {attempt.broken} broken")
    if attempt.unmet:
        names = ", ".join(shorten(name, 80) for name in attempt.open[:3])
        parts.append(f"open: {names}" + (f" and {attempt.unmet - 3} more" if attempt.unmet > 3 else ""))
    return "; ".join(parts)


def describe_pattern(state: RunState) -> str:
    """Return what the attempts have in common."""
    attempts = state.progress.attempts
    if state.is_rejected:
        return "rejected: every rule passes, and the review asks for something else"
    if len(attempts) < 2:
        return "one attempt only" if attempts else "nothing was judged"
    before, last = attempts[-2:]
    if last.failing and last.same_since < last.iteration:
        since = [failing.since for failing in last.failing.values()]
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


def ask_question(state: RunState, reason: Reason) -> str:
    """Return the one question that a person has to answer."""
    evaluation, signals = state.evaluation, state.signals
    if reason is Reason.BLOCKED and signals.blocked:
        claim = f"Is the agent right that {signals.blocked.rule} cannot be met ({signals.blocked.reason})?"
        return shorten(claim, 2 * MAX_ITEM_LENGTH)
    if reason is Reason.UNCONFIRMED and evaluation and evaluation.assumptions:
        names = ", ".join(_describe_rule(state, name) for name in evaluation.assumptions)
        return f"Is it so: {shorten(names, MAX_ITEM_LENGTH)}?"
    if reason is Reason.UNCONFIRMED:
        return "The review is outstanding: is it done?"
    if signals.review and state.is_rejected:
        feedback = shorten(signals.review.feedback, MAX_ITEM_LENGTH)
        return f"Is another round worth it for what the review asks ({feedback})?"
    first = next(iter((*evaluation.failed, *evaluation.warnings)), None) if evaluation else None
    if evaluation and evaluation.is_clean and first is None and signals.exit_signal is False:
        return "Every rule passes, and the agent says that it is not done: what is missing?"
    rule = shorten(first.id, MAX_ITEM_LENGTH) if first else "the rule that fails"
    return find_row(reason).question.replace("{rule}", rule)


def _describe_rule(state: RunState, name: str) -> str:
    rule = state.criteria.by_id.get(name)
    return f"{name} ({rule.description})" if rule and rule.description != name else name


def build_result(state: RunState, events: Sequence[Event], history: str) -> dict[str, Any]:
    """Return the result JSON of a run."""
    best, draft, usage, review = state.progress.best, state.setup.draft, state.progress.usage, state.signals.review
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
        "artifact_status": get_artifact_status(state).value,
        **_build_evaluation(state),
        "best": best.model_dump(include={"iteration", "score"}) if best else None,
        "distance_to_success": compute_distance(state),
        "usage": {
            "tokens": usage.tokens,
            "cost_usd": usage.cost_usd,
            "seconds": round(state.completed_phase_seconds, 3),
        },
        "budgets": {name: {"used": used, "limit": limit} for name, (used, limit) in get_budgets(state).items()},
        "breakers": {
            name: {"times": times, "limit": limit} for name, (times, limit) in count_repetitions(state).items()
        },
        "draft": {
            "clarity": draft.clarity,
            "shape": draft.shape,
            "workflow": draft.workflow,
            "reversibility": draft.reversal,
            "confirmed_by": draft.confirmed_by,
        },
        "review": review.model_dump(mode="json") if review else None,
        "verdict": build_verdict(state) if state.is_over else None,
        "decision": _find_last_decision(state, events),
        "updated_at": state.updated_at,
        "history": history,
        **({"workload": _build_workload(state.experiment)} if isinstance(state, ExperimentState) else {}),
    }


def _build_workload(experiment: Experiment) -> dict[str, Any]:
    """Return the part of the result that only experiments have."""
    hidden = experiment.count_held_out()
    truths = {judgement.iteration: judgement.truth.value for judgement in experiment.judgements}
    measurements, last = experiment.visible_measurements, experiment.last
    return {
        "id": experiment.workload,
        "manifest": experiment.manifest,
        "mode": experiment.policy.mode,
        "cases": len(experiment.cases),
        "baseline": len(measurements[0].passing) if measurements else None,
        "passing": len(last.passing) if last else None,
        "failing": sorted(last.failing) if last else [],
        "not_measured": sorted(last.unmeasured) if last else [],
        "hypotheses": [
            {"iteration": belief.iteration, "theory": belief.theory, "truth": truths.get(belief.iteration, "untested")}
            for belief in experiment.hypotheses
        ],
        "held_out": {"passing": hidden[0], "total": hidden[1]} if hidden else None,
    }


def _build_evaluation(state: RunState) -> dict[str, Any]:
    """Return the last evaluation; its score is final only if it is about this artifact in this phase."""
    evaluation = state.evaluation
    if evaluation is None:
        total = len(state.criteria.get_active_rules(state.phase))
        nothing: dict[str, Any] = {"failed": [], "warnings": [], "regressions": [], "void": False, "findings": []}
        return {"score": None, "last_evaluated_score": None, "rules": {"total": total, "passed": 0}, **nothing}
    is_final = get_artifact_status(state) is ArtifactStatus.EVALUATED and evaluation.phase is state.phase
    total = evaluation.total or len(state.criteria.get_active_rules(evaluation.phase))
    return {
        "score": evaluation.score if is_final else None,
        "last_evaluated_score": evaluation.score,
        "rules": {"total": total, "passed": evaluation.passing},
        "failed": [complaint.id for complaint in evaluation.failed],
        "warnings": [complaint.id for complaint in evaluation.warnings],
        "regressions": list(evaluation.regressions),
        "void": evaluation.void,
        "findings": [finding.model_dump() for finding in evaluation.findings],
    }


def _find_last_decision(state: RunState, events: Sequence[Event]) -> dict[str, Any] | None:
    if state.is_over:
        return decide(state, parse_reason(state.stop.reason)).dump()
    for event in reversed(events):
        if isinstance(event.payload, (EvaluationDone, ReviewDone, EndPayload)) and event.payload.decision:
            return event.payload.decision.dump()
    return None
