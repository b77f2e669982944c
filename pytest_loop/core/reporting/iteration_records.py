"""What each iteration came to, for those who compare iterations and runs: made from events alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from math import isfinite
from typing import Any

from pydantic import ValidationError

from pytest_loop.core.machine.early_stop import FIRST_ASKED, GOOD, confidence
from pytest_loop.core.machine.score_trend import USUAL, Trigger, best, direction, is_flat, last_changes, trajectory
from pytest_loop.core.machine.stop_reasons import budgets
from pytest_loop.core.model.rules import Phase, Value
from pytest_loop.core.model.run_state import Assessment, Event, Kind, RunState, Target, Usage
from pytest_loop.core.text.lengths import shorten

WHOLE = 100
_HYPOTHESIS = "hypothesis_formed"
_LONGEST = 300


class Verification(str, Enum):
    """Whether the rules have confirmed what an iteration came to; SKIPPED waits for a person."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    VOID = "void"


class Comparison(Value):
    """An iteration beside the first one of its phase that counts."""

    iteration_number: int
    quality_delta: float


class IterationRecord(Value):
    """One iteration: its last evaluation, and what was spent since the one before. Unknown is None, never 0.

    `quality_delta` is 0 for the first of a phase, because another phase has other rules.
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
    reflections: tuple[str, ...] = ()
    experiment: dict[str, Any] | None = None
    eval_harness_result: dict[str, Any] | None = None
    quality_per_1k_tokens: float | None = None
    quality_per_minute: float | None = None
    baseline_comparison: Comparison | None = None

    @property
    def is_sound(self) -> bool:
        """Whether it can be compared with others."""
        return self.quality_score is not None and self.verification_status is not Verification.VOID


def records(state: RunState, events: Iterable[Event]) -> list[IterationRecord]:
    """All iterations that were judged, in their order."""
    found: dict[int, IterationRecord] = {}
    said: dict[int, dict[str, Any]] = {}
    usage, seconds = Usage(), 0.0
    for event in events:
        payload = event.payload
        usage, seconds = usage.plus(_usage(payload)), seconds + _seconds(payload)
        if event.event == Kind.CRITIQUE_DONE.value:
            said.setdefault(event.iteration, {})["reflections"] = _reflections(payload)
        elif event.event == _HYPOTHESIS:
            said.setdefault(event.iteration, {})["experiment"] = payload
        elif event.event == Kind.EVALUATION_DONE.value:
            one = _record(state, event)
            earlier = found.get(event.iteration)
            found[event.iteration] = _spent(one, usage, seconds, earlier)
            usage, seconds = Usage(), 0.0
    told = [one.model_copy(update=said.get(number, {})) for number, one in sorted(found.items())]
    return _compared(told)


def _usage(payload: Mapping[str, Any]) -> Usage:
    try:
        return Usage.model_validate(payload.get("usage") or {})
    except ValidationError:  # another tool's
        return Usage()


def _seconds(payload: Mapping[str, Any]) -> float:
    value = payload.get("seconds")
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _reflections(payload: Mapping[str, Any]) -> tuple[str, ...]:
    found = payload.get("issues")
    issues = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return tuple(shorten(f"{one.get('rule_id', '')}: {one.get('problem', '')}", _LONGEST) for one in issues)


def _record(state: RunState, event: Event) -> IterationRecord:
    common = {"iteration": event.iteration, "iteration_number": event.iteration, "timestamp": event.ts}
    try:
        one = Assessment.model_validate({**event.payload, "phase": event.phase})
    except ValidationError:  # another tool's, which says less
        return IterationRecord(**common, phase=event.phase)
    return IterationRecord(
        **common,
        phase=event.phase,
        score=one.score,
        passed=one.passed,
        quality_score=round(WHOLE * one.score, 2),
        verification_status=_verification(one),
        output_snapshot_path=_snapshot(state, event.iteration, one),
        eval_harness_result={
            "status": "void" if one.void else "pass" if one.passed else "fail",
            "score": round(WHOLE * one.score, 2),
            "pass_count": one.passing,
            "total_count": one.total,
            "void_reason": next((sign.kind for sign in one.findings), None) if one.void else None,
        },
    )


def _verification(one: Assessment) -> Verification:
    if one.void:
        return Verification.VOID
    if not one.is_reached:
        return Verification.FAILED
    return Verification.SKIPPED if one.assumptions else Verification.PASSED


def _snapshot(state: RunState, iteration: int, one: Assessment) -> str | None:
    """Where its files are listed, in the run's folder; of a document only the last version is kept."""
    if state.target is Target.WORKSPACE:
        return f"files-{iteration}.json"
    is_last = bool(one.artifact_hash) and state.artifact_hash.startswith(one.artifact_hash)
    return state.artifact if is_last else None


def _spent(one: IterationRecord, usage: Usage, seconds: float, earlier: IterationRecord | None) -> IterationRecord:
    """With what it cost; an iteration that was judged in both phases has cost both."""
    if earlier:
        usage = usage.plus(Usage(tokens=earlier.tokens_used, cost_usd=earlier.token_cost_usd))
        seconds += earlier.execution_time_ms / 1000
    quality, tokens = one.quality_score, usage.tokens
    return one.model_copy(
        update={
            "tokens_used": tokens,
            "token_cost_usd": usage.cost_usd,
            "execution_time_ms": round(seconds * 1000),
            "quality_per_1k_tokens": round(quality * 1000 / tokens, 3) if quality is not None and tokens else None,
            "quality_per_minute": round(quality * 60 / seconds, 3) if quality is not None and seconds else None,
        }
    )


def _compared(told: Sequence[IterationRecord]) -> list[IterationRecord]:
    """Each beside the one before it and the first one of its phase; a void one is compared with nothing."""
    done: list[IterationRecord] = []
    first: dict[Phase, IterationRecord] = {}
    last: dict[Phase, IterationRecord] = {}
    for one in told:
        if one.is_sound:
            if before := last.get(one.phase):
                start = first[one.phase]
                compared = Comparison(iteration_number=start.iteration, quality_delta=_delta(start, one))
                one = one.model_copy(update={"quality_delta": _delta(before, one), "baseline_comparison": compared})
            first.setdefault(one.phase, one)
            last[one.phase] = one
        done.append(one)
    return done


def _delta(before: IterationRecord, after: IterationRecord) -> float:
    return round((after.quality_score or 0.0) - (before.quality_score or 0.0), 2)


def analysis(state: RunState, told: Sequence[IterationRecord]) -> dict[str, Any]:
    """What the records say together, of the phase that was judged last."""
    comparable = [one for one in told if one.is_sound and one.phase is told[-1].phase]
    qualities = [one.quality_score or 0.0 for one in comparable]
    chosen = _chosen(comparable)
    final = told[-1] if told else None
    found = trajectory(qualities)
    return {
        "best_iteration": chosen.iteration if chosen else None,
        "best_quality": chosen.quality_score if chosen else None,
        "final_iteration": final.iteration if final else None,
        "final_quality": final.quality_score if final and final.is_sound else None,
        "degradation_detected": bool(chosen and final and _is_worse(final, chosen)),
        "trajectory": found.value if found else None,
        "early_stop": _early_stop(state, final, qualities),
        "unobservable": [name for name, (used, limit) in budgets(state).items() if limit is not None and used is None],
    }


def _chosen(comparable: Sequence[IterationRecord]) -> IterationRecord | None:
    """The best that passed and is good; where there is none, the best of all that count. The first of equal ones."""
    among = [one for one in comparable if _is_verified(one)] or comparable
    at = best([one.quality_score or 0.0 for one in among])
    return None if at is None else among[at]


def _is_verified(one: IterationRecord) -> bool:
    """Whether it passed, and is good."""
    return one.verification_status is Verification.PASSED and (one.quality_score or 0.0) >= WHOLE * GOOD


def _is_worse(final: IterationRecord, chosen: IterationRecord) -> bool:
    """Whether the run ended with less than it had; what is void is nothing."""
    return not final.is_sound or (final.quality_score or 0.0) < (chosen.quality_score or 0.0)


def _early_stop(state: RunState, final: IterationRecord | None, qualities: Sequence[float]) -> dict[str, Any]:
    """Which trigger holds with its usual figure, switched on or not; `stop` says that it has ended the run."""
    sure = confidence(state, state.evaluation) if state.evaluation else None
    flat = (Trigger.QUALITY_PLATEAU, Trigger.DIMINISHING_RETURNS)
    trigger = next((one for one in flat if is_flat(qualities, USUAL[one])), None)
    if final and sure is not None and sure >= Fraction(repr(USUAL[Trigger.HIGH_CONFIDENCE])) and _is_verified(final):
        trigger = Trigger.HIGH_CONFIDENCE if final.iteration >= FIRST_ASKED else trigger
    return {
        "stop": trigger is not None and state.stop.reason == trigger.value,
        "trigger": trigger.value if trigger else "none",
        "confidence": None if sure is None else round(float(sure), 4),
        "changes": [round(change, 4) if isfinite(change) else None for change in last_changes(qualities)],
        "direction": direction(qualities),
    }
