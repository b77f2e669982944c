"""Records for comparing iterations and runs: one per iteration, made from events alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from fractions import Fraction
from math import isfinite
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import CritiqueDone, EditPayload, EvaluationDone, PlanCreated, StepPayload
from pytest_loop.core.machine.breakers import FIRST_CONFIDENT_ITERATION, GOOD_SCORE, compute_confidence
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.machine.score_trend import classify_trajectory, compute_last_changes, find_direction, is_flat
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Phase, Value
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Kind, Reason, Target
from pytest_loop.core.text.lengths import shorten

_MAX_QUALITY = 100
# Limits of optional stop reasons, which are reported even if they are switched off.
_USUAL_LIMITS = {Reason.HIGH_CONFIDENCE: 0.95, Reason.QUALITY_PLATEAU: 0.02, Reason.DIMINISHING_RETURNS: 0.05}
_MAX_ISSUE_LENGTH = 300


class Verification(str, Enum):
    """Whether the rules confirm an iteration; SKIPPED waits for a person."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    VOID = "void"


class Comparison(Value):
    """The first iteration of the phase with a score that counts, and the change of quality since then."""

    iteration_number: int
    quality_delta: float


class IterationRecord(Value):
    """One iteration: its last evaluation, and the costs since the iteration before. Unknown is None, never 0.

    `quality_delta` is the change since the record before it; it is 0 for the first of a phase, which has other rules.
    `changed` is what the edit before the evaluation changed; None if there was no edit.
    """

    iteration: int
    phase: Phase
    score: float | None = None
    passed: bool | None = None
    iteration_number: int
    timestamp: str
    quality_score: float | None = None
    quality_delta: float = 0.0
    tokens_used: int | None = None
    token_cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tool_calls: int | None = None
    execution_time_ms: int = 0
    verification_status: Verification = Verification.FAILED
    output_snapshot_path: str | None = None
    plan: tuple[str, ...] = ()
    changed: ChangedParts | None = None
    reflections: tuple[str, ...] = ()
    experiment: dict[str, Any] | None = None
    eval_harness_result: dict[str, Any] | None = None
    quality_per_1k_tokens: float | None = None
    quality_per_minute: float | None = None
    baseline_comparison: Comparison | None = None

    @property
    def is_sound(self) -> bool:
        """Whether it has a score that counts."""
        return self.quality_score is not None and self.verification_status is not Verification.VOID


def build_records(state: RunState, events: Iterable[Event]) -> list[IterationRecord]:
    """Return a record for each iteration that was judged, in order."""
    records: dict[int, IterationRecord] = {}
    details: dict[int, dict[str, Any]] = {}
    usage, seconds = Usage(), 0.0
    change: ChangedParts | None = None
    for event in events:
        payload = event.payload
        if isinstance(payload, StepPayload):
            usage, seconds = usage.plus(payload.usage), seconds + (payload.seconds or 0.0)
        if isinstance(payload, EditPayload):
            change = payload.change
        elif isinstance(payload, PlanCreated):
            details.setdefault(event.iteration, {})["plan"] = payload.plan
        elif isinstance(payload, CritiqueDone):
            details.setdefault(event.iteration, {})["reflections"] = _list_reflections(payload)
        elif event.kind is Kind.HYPOTHESIS_FORMED:
            details.setdefault(event.iteration, {})["experiment"] = payload.dump()
        elif event.kind is Kind.EVALUATION_DONE:
            record = _make_record(state, event).model_copy(update={"changed": change})
            records[event.iteration] = _add_costs(record, usage, seconds, records.get(event.iteration))
            usage, seconds = Usage(), 0.0
    ordered = (record.model_copy(update=details.get(number, {})) for number, record in sorted(records.items()))
    return _compare_records(ordered)


def _list_reflections(payload: CritiqueDone) -> tuple[str, ...]:
    return tuple(shorten(f"{issue.rule_id}: {issue.problem}", _MAX_ISSUE_LENGTH) for issue in payload.issues)


def _make_record(state: RunState, event: Event) -> IterationRecord:
    common = {"iteration": event.iteration, "iteration_number": event.iteration, "timestamp": event.ts}
    if not isinstance(event.payload, EvaluationDone):  # written by another tool
        return IterationRecord(**common, phase=event.phase)
    evaluation = event.payload
    quality = round(_MAX_QUALITY * evaluation.score, 2)
    return IterationRecord(
        **common,
        phase=event.phase,
        score=evaluation.score,
        passed=evaluation.passed,
        quality_score=quality,
        verification_status=_find_verification(evaluation),
        output_snapshot_path=_find_snapshot(state, event.iteration, evaluation),
        eval_harness_result={
            "status": evaluation.verdict,
            "score": quality,
            "pass_count": evaluation.passing,
            "total_count": evaluation.total,
            "void_reason": next((finding.kind for finding in evaluation.findings), None) if evaluation.void else None,
        },
    )


def _find_verification(evaluation: Evaluation) -> Verification:
    if evaluation.void:
        return Verification.VOID
    if not evaluation.is_reached:
        return Verification.FAILED
    return Verification.SKIPPED if evaluation.assumptions else Verification.PASSED


def _find_snapshot(state: RunState, iteration: int, evaluation: Evaluation) -> str | None:
    """Return the name of the file with the judged state; None for a document that was edited since then."""
    if state.setup.target is Target.WORKSPACE:
        return f"files-{iteration}.json"
    judged = evaluation.artifact_hash
    return state.setup.artifact if judged and state.progress.artifact_hash.startswith(judged) else None


def _add_costs(
    record: IterationRecord, usage: Usage, seconds: float, earlier: IterationRecord | None
) -> IterationRecord:
    """Return the record with usage and time, added to what `earlier` has, a record of the same iteration."""
    if earlier:
        usage = usage.plus(Usage(tokens=earlier.tokens_used, cost_usd=earlier.token_cost_usd))
        seconds += earlier.execution_time_ms / 1000
    quality, tokens = record.quality_score, usage.tokens
    return record.model_copy(
        update={
            "tokens_used": tokens,
            "token_cost_usd": usage.cost_usd,
            "execution_time_ms": round(seconds * 1000),
            "quality_per_1k_tokens": round(quality * 1000 / tokens, 3) if quality is not None and tokens else None,
            "quality_per_minute": round(quality * 60 / seconds, 3) if quality is not None and seconds else None,
        }
    )


def _compare_records(records: Iterable[IterationRecord]) -> list[IterationRecord]:
    """Compare each sound record with the one before it, and with the first one of its phase."""
    compared: list[IterationRecord] = []
    first: dict[Phase, IterationRecord] = {}
    last: dict[Phase, IterationRecord] = {}
    for record in records:
        after = record
        if record.is_sound:
            if before := last.get(record.phase):
                start = first[record.phase]
                comparison = Comparison(iteration_number=start.iteration, quality_delta=_compute_delta(start, record))
                update = {"quality_delta": _compute_delta(before, record), "baseline_comparison": comparison}
                after = record.model_copy(update=update)
            first.setdefault(record.phase, after)
            last[record.phase] = after
        compared.append(after)
    return compared


def _compute_delta(before: IterationRecord, after: IterationRecord) -> float:
    return round((after.quality_score or 0.0) - (before.quality_score or 0.0), 2)


def build_analysis(state: RunState, records: Sequence[IterationRecord]) -> dict[str, Any]:
    """Summarize the records of the last phase: best and final quality, trajectory, and early stops."""
    comparable = [record for record in records if record.is_sound and record.phase is records[-1].phase]
    qualities = [record.quality_score or 0.0 for record in comparable]
    best = _choose_best(comparable)
    final = records[-1] if records else None
    trajectory = classify_trajectory(qualities)
    budgets = get_budgets(state)
    return {
        "best_iteration": best.iteration if best else None,
        "best_quality": best.quality_score if best else None,
        "final_iteration": final.iteration if final else None,
        "final_quality": final.quality_score if final and final.is_sound else None,
        "degradation_detected": bool(best and final and _is_worse(final, best)),
        "trajectory": trajectory.value if trajectory else None,
        "early_stop": _build_early_stop(state, final, qualities),
        "unobservable": [name for name, (used, limit) in budgets.items() if limit is not None and used is None],
    }


def _choose_best(comparable: Sequence[IterationRecord]) -> IterationRecord | None:
    """Return the best verified record, or else the best of all; of equal ones the first."""
    candidates = [record for record in comparable if _is_verified(record)] or comparable
    return max(candidates, key=lambda record: record.quality_score or 0.0, default=None)


def _is_verified(record: IterationRecord) -> bool:
    """Return whether a record passed with a good score."""
    is_good = (record.quality_score or 0.0) >= _MAX_QUALITY * GOOD_SCORE
    return is_good and record.verification_status is Verification.PASSED


def _is_worse(final: IterationRecord, best: IterationRecord) -> bool:
    """Return whether the run ended with a lower quality than its best."""
    return not final.is_sound or (final.quality_score or 0.0) < (best.quality_score or 0.0)


def _build_early_stop(state: RunState, final: IterationRecord | None, qualities: Sequence[float]) -> dict[str, Any]:
    """Return the early stop that the usual limits call for, even if it is off; `stop` tells if it ended the run."""
    confidence = compute_confidence(state, state.evaluation) if state.evaluation else None
    flat = (Reason.QUALITY_PLATEAU, Reason.DIMINISHING_RETURNS)
    trigger = next((reason for reason in flat if is_flat(qualities, _USUAL_LIMITS[reason])), None)
    is_sure = confidence is not None and confidence >= Fraction(repr(_USUAL_LIMITS[Reason.HIGH_CONFIDENCE]))
    if final and is_sure and _is_verified(final) and final.iteration >= FIRST_CONFIDENT_ITERATION:
        trigger = Reason.HIGH_CONFIDENCE
    changes = compute_last_changes(qualities)
    return {
        "stop": trigger is not None and state.stop.reason == trigger.value,
        "trigger": trigger.value if trigger else "none",
        "confidence": None if confidence is None else round(float(confidence), 4),
        "changes": [round(change, 4) if isfinite(change) else None for change in changes],
        "direction": find_direction(qualities),
    }
