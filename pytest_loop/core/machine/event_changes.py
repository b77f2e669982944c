"""The fields of a run that each event changes; the machine decides the next place."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from pytest_loop.core.events.run_payloads import (
    AcceptanceTestsPrepared,
    Answered,
    ArtifactCreated,
    ChecksPrepared,
    CritiqueDone,
    EditPayload,
    EvaluationDone,
    Failed,
    IterationAdvanced,
    LimitsRaised,
    Payload,
    PhaseError,
    PhaseSwitched,
    PlanCreated,
    RefinementDone,
    ReviewDone,
    StepPayload,
    Stopped,
    StopRequested,
)
from pytest_loop.core.machine.breakers import is_stalled
from pytest_loop.core.machine.progress import compute_evaluation_changes, find_put_back_edits, rescore
from pytest_loop.core.machine.stop_conditions import MAX_STEP_ERRORS
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.attempt import Best
from pytest_loop.core.model.escalation import Answer
from pytest_loop.core.model.evaluation import Critique
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import PreparedChecks, Review, RunState, State, StepErrors, Stop
from pytest_loop.core.model.vocabulary import BUILTIN, Place, Reason, ReviewStatus, Status, Step, name_user_stop

Changes = dict[str, Any]


def apply_payload(state: State, payload: Payload) -> State:
    """Return the state with the changes of an event, except its place in the machine."""
    after = state.replace(phase_started_epoch_seconds=None, **compute_changes(payload, state))
    if isinstance(payload, StepPayload):
        after = _add_step_costs(state, after, payload)
    if isinstance(payload, Failed):
        after = _add_completed_seconds(after, state.progress.open_seconds)
    return after


def _add_step_costs(before: State, after: State, payload: StepPayload) -> State:
    """Add the cost and time of a step; count its time as completed once it and any step beside it succeeded."""
    seconds = before.progress.open_seconds + (payload.seconds or 0.0)
    after = after.replace(usage=before.progress.usage.plus(payload.usage))
    if payload.completes is None:
        return after.replace(open_seconds=seconds)
    # Success clears the errors of a step; of two steps side by side, only those of the one that succeeded.
    unfinished = {step.value for step in after.progress.awaited if step is not payload.completes}
    errors = {name: value for name, value in after.progress.step_errors.items() if name in unfinished}
    after = after.replace(step_errors=errors)
    if isinstance(payload, (ArtifactCreated, ChecksPrepared)) and after.progress.awaited:
        return after.replace(open_seconds=seconds)
    return _add_completed_seconds(after, seconds).replace(last_completed_step=before.current_step.value)


def _add_completed_seconds(state: State, seconds: float) -> State:
    """Add to the completed seconds, rounded; never lower the sum."""
    before = state.completed_phase_seconds
    return state.replace(completed_phase_seconds=max(before, round(before + seconds, 3)), open_seconds=0.0)


def list_awaited_steps(state: RunState) -> tuple[Step, ...]:
    """Return the steps that EVALUATE waits for: writing the artifact, and preparing checks of rules in plain words."""
    is_first_edit = state.setup.edits_first and state.iteration == 1
    return (
        *((Step.PRODUCE,) if state.is_document_missing or is_first_edit else ()),
        *((Step.PREPARE,) if state.unprepared_rules else ()),
    )


def _list_remaining_steps(state: RunState, completed: Step) -> tuple[Step, ...]:
    return tuple(step for step in state.progress.awaited if step is not completed)


@singledispatch
def compute_changes(_payload: Payload, _state: RunState) -> Changes:
    """Return the fields that a payload of this class changes, besides those of every step; none by default."""
    return {}


@compute_changes.register
def _record_plan(payload: PlanCreated, state: RunState) -> Changes:
    return {"plan": payload.plan, "awaited": list_awaited_steps(state)}


@compute_changes.register
def _record_artifact(payload: ArtifactCreated, state: RunState) -> Changes:
    return {"awaited": _list_remaining_steps(state, Step.PRODUCE), **_compute_edit_changes(payload, state)}


@compute_changes.register
def _record_checks(payload: ChecksPrepared, state: RunState) -> Changes:
    earlier = state.prepared_checks.checks if state.prepared_checks else ()
    checks = PreparedChecks(checks=(*earlier, *payload.checks))
    return {"awaited": _list_remaining_steps(state, Step.PREPARE), "prepared_checks": checks}


@compute_changes.register
def _record_tests(payload: AcceptanceTestsPrepared, state: RunState) -> Changes:
    return {
        "criteria": state.criteria.replace_rules((*state.criteria.rules, *payload.rules)),
        "arguments": (*state.setup.arguments, *payload.arguments),
        "seal": payload.seal,
        "work_seal": None,
        "written_tests": payload.paths,
        "artifact_hash": payload.artifact_hash,
    }


def _compute_edit_changes(payload: EditPayload, state: RunState) -> Changes:
    """Return the changes of an agent's edit; keep a blocked rule or exit signal that the payload does not set."""
    before = state.progress.artifact_hash
    has_searched = payload.agent == BUILTIN and payload.artifact_hash not in (None, before)
    return {
        "artifact_hash": payload.artifact_hash or before,
        "has_searched_edits": state.progress.has_searched_edits or has_searched,
        "last_change": payload.change,
        "tampering": (*state.signals.tampering, *payload.findings),
        "rewrites": payload.rewrites,
        "rewritten": payload.rewritten,
        **({"blocked": payload.blocked} if payload.blocked else {}),
        **({"exit_signal": payload.exit_signal} if payload.exit_signal is not None else {}),
    }


@compute_changes.register
def _record_phase_switch(_payload: PhaseSwitched, state: RunState) -> Changes:
    """Switch to B, and reset the gains; if B has no own rules, judge the last evaluation by the threshold of B."""
    changes: Changes = {"phase": Phase.B, "stagnation_count": 0, "last_score": 0.0}
    if state.criteria.has_phase_b or state.evaluation is None:
        return changes
    rescored = rescore(state.evaluation, state.criteria.phase[Phase.B].threshold)
    best = Best(iteration=state.iteration, score=rescored.score, phase=Phase.B)
    return {**changes, "evaluation": rescored, "last_score": rescored.score, "best": best}


@compute_changes.register
def _record_evaluation(payload: EvaluationDone, state: RunState) -> Changes:
    """Record the progress; if the current agent has stalled, continue with the next one."""
    changes = {**compute_evaluation_changes(state, payload), "review": None}
    index = state.progress.agent_index
    if index + 1 < len(state.setup.agents) and is_stalled(state.replace(**changes)):
        changes |= {"agent_index": index + 1, "agent_since": state.iteration + 1, "stagnation_count": 0}
    return changes


@compute_changes.register
def _record_review(payload: ReviewDone, _state: RunState) -> Changes:
    return {"review": Review(status=payload.status, feedback=payload.feedback)}


@compute_changes.register
def _record_critique(payload: CritiqueDone, _state: RunState) -> Changes:
    return {"critique": Critique.model_construct(**{name: getattr(payload, name) for name in Critique.model_fields})}


@compute_changes.register
def _record_refinement(payload: RefinementDone, state: RunState) -> Changes:
    """Clear the critique: from here on REFINE only waits for the next iteration."""
    return {"critique": None, **_compute_edit_changes(payload, state)}


@compute_changes.register
def _record_next_iteration(_payload: IterationAdvanced, state: RunState) -> Changes:
    return {"iteration": state.iteration + 1, "plan": ()}


@compute_changes.register
def _record_error(payload: PhaseError, state: RunState) -> Changes:
    """Count one more error of the step; a final error counts as the maximum, so that there is no retry."""
    name = payload.step or state.current_step.value
    errors = dict(state.progress.step_errors)
    earlier = errors.pop(name, StepErrors(times=0))
    errors[name] = StepErrors(times=earlier.times + (MAX_STEP_ERRORS if payload.final else 1), reason=payload.reason)
    return {
        "step_errors": errors,
        "tampering": (*state.signals.tampering, *payload.findings),
        "put_back": state.progress.put_back | find_put_back_edits(payload.findings),
    }


@compute_changes.register
def _record_stop_request(payload: StopRequested, state: RunState) -> Changes:
    put_back = state.progress.put_back | find_put_back_edits(payload.findings)
    return {"stop_request": name_user_stop(payload.reason or ""), "put_back": put_back}


@compute_changes.register
def _record_stop(payload: Stopped, _state: RunState) -> Changes:
    reason = payload.reason or Reason.USER_STOP.value
    row = find_row(reason)
    return {"status": row.status, "stop": Stop(passed=row.is_success, reason=reason)}


@compute_changes.register
def _record_failure(payload: Failed, _state: RunState) -> Changes:
    return {"status": Status.FAILED, "stop": Stop(reason=payload.reason or Reason.PHASE_ERROR.value)}


@compute_changes.register
def _record_limits(payload: LimitsRaised, state: RunState) -> Changes:
    """Raise limits, and reopen a run that is over; after UNCONFIRMED and SETUP_ERROR, evaluate it again first."""
    changes = _compute_limits(payload, state)
    if state.is_over:
        changes |= _compute_reopening(state)
        if state.stop.reason in (Reason.UNCONFIRMED.value, Reason.SETUP_ERROR.value):
            changes["current_step"] = Place.EVALUATE
    return changes


@compute_changes.register
def _record_answer(payload: Answered, state: RunState) -> Changes:
    """Record an answer, and reopen the run; the answered reason does not stop it again at once.

    Evaluate next after a confirmation or a set-up error. Any other answer to a pending review rejects the work.
    """
    answer = Answer(
        text=payload.text,
        question=payload.question,
        iteration=state.iteration,
        evaluations=state.progress.evaluations,
        unsealed=payload.unseal,
    )
    changes = _compute_limits(payload, state) | {"answers": (*state.signals.answers, answer), "blocked": None}
    if state.is_over:
        changes |= _compute_reopening(state)
    if state.stop.reason == Reason.SETUP_ERROR.value:
        changes["current_step"] = Place.EVALUATE
    if payload.confirmed:
        confirmed = (*state.signals.confirmed_rules, *payload.confirmed)
        changes |= {"current_step": Place.EVALUATE, "confirmed_rules": confirmed}
    elif state.is_review_pending:
        changes["review"] = Review(status=ReviewStatus.REJECT, feedback=payload.text)
    if payload.unseal and state.setup.seal:
        changes["seal"] = state.setup.seal.unseal(payload.unseal)
    return changes


def _compute_limits(payload: LimitsRaised, state: RunState) -> Changes:
    limits = state.setup.limits
    if payload.is_exact:
        return _compute_exact_limits(payload, state)
    seconds = _find_higher(state.max_completed_phase_seconds, payload.max_completed_phase_seconds)
    raised = {"usd": _find_higher(limits.usd, payload.usd), "tokens": _find_higher(limits.tokens, payload.tokens)}
    return {
        "limits": limits.model_copy(update=raised),
        "max_iterations": max(state.max_iterations, payload.max_iterations),
        "max_completed_phase_seconds": seconds,
    }


def _compute_exact_limits(payload: LimitsRaised, state: RunState) -> Changes:
    """Return the limits that a payload names, even if they are lower."""
    values: Changes = {name: getattr(payload, name) for name in payload.model_fields_set}
    budgets: Changes = {name: values[name] for name in ("usd", "tokens") if name in values}
    names = ("max_iterations", "max_completed_phase_seconds")
    others: Changes = {name: values[name] for name in names if name in values}
    return {"limits": state.setup.limits.model_copy(update=budgets), **others}


def _compute_reopening(state: RunState) -> Changes:
    """Return the fields that let a stopped run continue, with errors and repetitions counted from zero."""
    changes: Changes = {
        "status": Status.RUNNING,
        "stop": Stop(),
        "stop_request": "",
        "stagnation_count": 0,
        "step_errors": {},
    }
    if find_row(state.stop.reason).restarts_breakers:
        changes["agent_since"] = state.iteration + 1
    return changes


def _find_higher(limit: Any, raised: Any) -> Any:
    return limit if limit is None or raised is None else max(limit, raised)
