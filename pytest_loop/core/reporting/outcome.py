"""The result of a run as JSON data: its status, its distance to success, and the last decision."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EndPayload, EvaluationDone, ReviewDone
from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH, RunState
from pytest_loop.core.model.vocabulary import parse_reason
from pytest_loop.core.reporting.closing_verdict import build_verdict
from pytest_loop.core.reporting.decision import decide
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState


class ArtifactStatus(str, Enum):
    """Whether the last evaluation is about the current artifact."""

    NOT_CREATED = "not_created"
    UNEVALUATED = "unevaluated"
    STALE = "stale"
    EVALUATED = "evaluated"


def get_artifact_status(state: RunState) -> ArtifactStatus:
    """Return the status of the current artifact; the score is final only if it is EVALUATED."""
    if not state.progress.artifact_hash:
        return ArtifactStatus.NOT_CREATED
    if state.evaluation is None:
        return ArtifactStatus.UNEVALUATED
    if state.evaluation.artifact_hash != state.progress.artifact_hash[:SHORT_HASH_LENGTH]:
        return ArtifactStatus.STALE
    return ArtifactStatus.EVALUATED


def compute_distance(state: RunState) -> dict[str, Any] | None:
    """Return how far a run is from its threshold; None after a success, or if the current artifact is not evaluated."""
    evaluation = state.evaluation
    if evaluation is None or state.stop.passed or get_artifact_status(state) is not ArtifactStatus.EVALUATED:
        return None
    threshold = float(state.criteria.phase[evaluation.phase].threshold)
    return {
        "threshold": threshold,
        "score": evaluation.score,
        "gap": round(max(0.0, threshold - evaluation.score), 6),
        "blocking": [complaint.id for complaint in (*evaluation.failed, *evaluation.blocking_errors)],
        "rules_passed": evaluation.passing,
        "rules_total": evaluation.total,
    }


def report_budget(state: RunState) -> dict[str, Any]:
    """Return the figures of a stop by a budget, for its event."""
    limit = state.max_completed_phase_seconds
    return {
        "completed_phase_seconds": round(state.completed_phase_seconds, 3),
        "max_completed_phase_seconds": limit,
        "overshoot_seconds": round(max(0.0, state.completed_phase_seconds - limit), 3) if limit is not None else None,
        "last_completed_step": state.progress.last_completed_step,
    }


def build_result(state: RunState, events: Sequence[Event], history: str) -> dict[str, Any]:
    """Return the result JSON of a run."""
    best, draft, usage, review = state.progress.best, state.setup.draft, state.progress.usage, state.signals.review
    return {
        "schema_version": 1,
        "run_id": state.run_id,
        "task_alias": state.task_alias,
        "task": state.task.prompt,
        "status": state.status.value,
        "stop": state.stop.model_dump(),
        "iteration": state.iteration,
        "max_iterations": state.max_iterations,
        "phase": state.phase.value,
        "current_step": state.current_step.value,
        "threshold": float(state.criteria.phase[state.phase].threshold),
        "artifact": state.setup.artifact,
        "plan": list(state.plan),
        "changed": state.progress.last_change.model_dump() if state.progress.last_change else None,
        "artifact_status": get_artifact_status(state).value,
        **_build_evaluation(state),
        "best": best.model_dump(include={"iteration", "score"}) if best else None,
        "distance_to_success": compute_distance(state),
        "usage": {
            "tokens": usage.tokens,
            "cost_usd": usage.cost_usd,
            **({} if usage.estimated_usd is None else {"estimated_usd": usage.estimated_usd}),
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
        "answers": [answer.model_dump(mode="json") for answer in state.signals.answers],
        "review": review.model_dump(mode="json") if review else None,
        "verdict": build_verdict(state) if state.is_over else None,
        "decision": _find_last_decision(state, events),
        "started_at": state.created_at,
        "updated_at": state.updated_at,
        "history": history,
        **({"workload": _build_workload(state.experiment)} if isinstance(state, ExperimentState) else {}),
    }


def _build_workload(experiment: Experiment) -> dict[str, Any]:
    """Return the part of the result that only experiments have."""
    held_out = experiment.count_held_out()
    truths = {outcome.iteration: outcome.truth.value for outcome in experiment.hypothesis_outcomes}
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
            {
                "iteration": hypothesis.iteration,
                "theory": hypothesis.theory,
                "truth": truths.get(hypothesis.iteration, "untested"),
            }
            for hypothesis in experiment.hypotheses
        ],
        "held_out": {"passing": held_out[0], "total": held_out[1]} if held_out else None,
    }


def _build_evaluation(state: RunState) -> dict[str, Any]:
    """Return the fields about the last evaluation; its score is final only for the current artifact and phase."""
    evaluation = state.evaluation
    if evaluation is None:
        total = len(state.criteria.get_active_rules(state.phase))
        lists = ("failed", "warnings", "errors", "regressions", "findings")
        empty: dict[str, Any] = {"void": False, **{name: [] for name in lists}}
        return {"score": None, "last_evaluated_score": None, "rules": {"total": total, "passed": 0}, **empty}
    is_final = get_artifact_status(state) is ArtifactStatus.EVALUATED and evaluation.phase is state.phase
    total = evaluation.total or len(state.criteria.get_active_rules(evaluation.phase))
    return {
        "score": evaluation.score if is_final else None,
        "last_evaluated_score": evaluation.score,
        "rules": {"total": total, "passed": evaluation.passing},
        "failed": [complaint.id for complaint in evaluation.failed],
        "warnings": [complaint.id for complaint in evaluation.warnings],
        "errors": [complaint.id for complaint in evaluation.errors],
        "regressions": list(evaluation.regressions),
        "void": evaluation.void,
        "findings": [finding.model_dump() for finding in evaluation.findings],
    }


def _find_last_decision(state: RunState, events: Sequence[Event]) -> dict[str, Any] | None:
    kinds = EndPayload if state.is_over else (EvaluationDone, ReviewDone, EndPayload)
    for event in reversed(events):
        if isinstance(event.payload, kinds) and event.payload.decision:
            return event.payload.decision.dump()
    return decide(state, parse_reason(state.stop.reason)).dump() if state.is_over else None
