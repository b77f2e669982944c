"""What each event changes in the state of a run; where the run stands then is the machine's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_loop.core.machine.progress import judged, rescored
from pytest_loop.core.machine.stop_reasons import MOST_ERRORS, is_stalled
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import (
    Best,
    Blocked,
    Critique,
    Kind,
    Review,
    RunState,
    SealFinding,
    Step,
    Stop,
    Target,
    Trouble,
    Usage,
)
from pytest_loop.core.model.vocabulary import Reason, Status, known_reason, own_word
from pytest_loop.core.workload.experiment_state import NOTES, noted

Payload = Mapping[str, Any]
Changes = dict[str, Any]
_NO_STEP_TAKES_SO_LONG = 1e9


def changed(state: RunState, kind: Kind, payload: Payload) -> RunState:
    """The state after an event, but for the place: what only this kind changes, and what every event may change."""
    after = state.model_copy(update=_CHANGES[kind](state, payload))
    own: Changes = {
        "phase_started_epoch_seconds": None,
        "usage": state.usage.plus(Usage.model_validate(payload.get("usage") or {})),
    }
    if state.notebook is not None:
        own["notebook"] = noted(state.notebook, kind, payload)
    if kind in WORK:
        # What went wrong is made good by success; of two steps side by side, only for the one that succeeded.
        open_steps = {step.value for step in after.awaited if step is not WORK[kind]}
        own["troubles"] = {name: one for name, one in after.troubles.items() if name in open_steps}
    return after.model_copy(update=own | _clocked(state, after, kind, payload))


# The step that each of these events completes.
WORK: dict[Kind, Step] = {
    Kind.PLAN_CREATED: Step.PLAN,
    Kind.ARTIFACT_CREATED: Step.PRODUCE,
    Kind.CHECKS_PREPARED: Step.PREPARE,
    Kind.CALIBRATION_DONE: Step.PREPARE,
    Kind.BASELINE_DONE: Step.EVALUATE,
    Kind.EVALUATION_DONE: Step.EVALUATE,
    Kind.CRITIQUE_DONE: Step.CRITIQUE,
    Kind.REFINEMENT_DONE: Step.REFINE,
}


def _clocked(state: RunState, after: RunState, kind: Kind, payload: Payload) -> Changes:
    """Only completed steps count; a step and its one retry are one, and so are two steps side by side."""
    spent = state.open_seconds + _seconds(payload)
    is_one_of_two = kind in (Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED) and bool(after.awaited)
    if kind is not Kind.FAILED and (kind not in WORK or is_one_of_two):
        return {"open_seconds": spent}
    before = state.completed_phase_seconds
    done: Changes = {"completed_phase_seconds": max(before, round(before + spent, 3)), "open_seconds": 0.0}
    return done | ({"last_completed_step": state.current_step.value} if kind in WORK else {})


def _seconds(payload: Payload) -> float:
    """A clock that went back, or says nonsense, adds nothing."""
    value = payload.get("seconds")
    return float(value) if isinstance(value, (int, float)) and 0 < value < _NO_STEP_TAKES_SO_LONG else 0.0


def _plan_created(state: RunState, payload: Payload) -> Changes:
    return {"plan": tuple(payload.get("plan", ())), "awaited": awaited_steps(state)}


def awaited_steps(state: RunState) -> tuple[Step, ...]:
    """What has to be there before EVALUATE: the artifact, and checks for the sentences among the active rules."""
    is_missing = state.target is Target.ARTIFACT and not state.artifact_hash
    return (*((Step.PRODUCE,) if is_missing else ()), *((Step.PREPARE,) if unprepared(state) else ()))


def unprepared(state: RunState) -> tuple[str, ...]:
    """The active rules whose check is a sentence that nobody has made concrete."""
    prepared = {check.get("rule_id") for check in (state.prepared_checks or {}).get("checks", ())}
    return tuple(
        rule.id
        for rule in state.criteria.get_active_rules(state.phase)
        if isinstance(rule.check, str) and rule.id not in prepared
    )


def _still_awaited(state: RunState, done: Step) -> tuple[Step, ...]:
    return tuple(one for one in state.awaited if one is not done)


def _artifact_created(state: RunState, payload: Payload) -> Changes:
    return {"awaited": _still_awaited(state, Step.PRODUCE), **_answered(state, payload)}


def _checks_prepared(state: RunState, payload: Payload) -> Changes:
    known = (state.prepared_checks or {}).get("checks", [])
    checks = {"checks": [*known, *payload.get("checks", [])]}
    return {"awaited": _still_awaited(state, Step.PREPARE), "prepared_checks": checks}


def _answered(state: RunState, payload: Payload) -> Changes:
    """What an agent's answer says beside the artifact; a signal that it does not repeat stays as it was."""
    blocked, signal = payload.get("blocked"), payload.get("exit_signal")
    return {
        "artifact_hash": payload.get("artifact_hash") or state.artifact_hash,
        "tampered": tuple(SealFinding.model_validate(one) for one in payload.get("findings", ())),
        **({"blocked": Blocked.model_validate(blocked)} if blocked else {}),
        **({"exit_signal": bool(signal)} if signal is not None else {}),
    }


def _phase_switched(state: RunState, _payload: Payload) -> Changes:
    """Another denominator: gains start anew. A phase without rules is decided from the evaluation that is there."""
    changes: Changes = {"phase": Phase.B, "stagnation_count": 0, "last_score": 0.0}
    if state.criteria.has_phase_b or state.evaluation is None:
        return changes
    again = rescored(state.evaluation, state.criteria.phase[Phase.B].threshold)
    best = Best(iteration=state.iteration, score=again.score, phase=Phase.B)
    return {**changes, "evaluation": again, "last_score": again.score, "best": best}


def _evaluation_done(state: RunState, payload: Payload) -> Changes:
    """Where an agent has stopped making progress, it is the turn of the next one."""
    changes = {**judged(state, payload), "review": None}
    if state.rung + 1 < len(state.agents) and is_stalled(state.model_copy(update=changes)):
        changes |= {"rung": state.rung + 1, "rung_since": state.iteration + 1, "stagnation_count": 0}
    return changes


def _review_done(_state: RunState, payload: Payload) -> Changes:
    return {"review": Review.model_validate(payload)}


def _critique_done(_state: RunState, payload: Payload) -> Changes:
    return {"critique": Critique.model_validate(payload)}


def _refinement_done(state: RunState, payload: Payload) -> Changes:
    """The critique is answered: from here on REFINE has nothing to do but to let the next iteration begin."""
    return {"critique": None, **_answered(state, payload)}


def _iteration_advanced(state: RunState, _payload: Payload) -> Changes:
    return {"iteration": state.iteration + 1, "plan": ()}


def _phase_error(state: RunState, payload: Payload) -> Changes:
    """One more of its step; a final one leaves nothing to try again."""
    name = str(payload.get("step") or state.current_step.value)
    before = state.troubles.get(name, Trouble(times=0)).times
    times = before + (MOST_ERRORS if payload.get("final") else 1)
    others = {other: one for other, one in state.troubles.items() if other != name}
    return {"troubles": {**others, name: Trouble(times=times, reason=str(payload.get("reason", "")))}}


def _stop_requested(_state: RunState, payload: Payload) -> Changes:
    return {"stop_asked": own_word(str(payload.get("reason") or ""))}


def _stopped(_state: RunState, payload: Payload) -> Changes:
    word = str(payload.get("reason") or Reason.USER_STOP.value)
    status = known_reason(word).status
    return {"status": status, "stop": Stop(passed=status is Status.COMPLETED, reason=word)}


def _failed(_state: RunState, payload: Payload) -> Changes:
    word = str(payload.get("reason") or Reason.PHASE_ERROR.value)
    return {"status": Status.FAILED, "stop": Stop(passed=False, reason=word)}


def _only_noted(_state: RunState, _payload: Payload) -> Changes:
    """What only the notebook of an experiment remembers."""
    return {}


_CHANGES: dict[Kind, Callable[[RunState, Payload], Changes]] = {
    Kind.PLAN_CREATED: _plan_created,
    Kind.ARTIFACT_CREATED: _artifact_created,
    Kind.CHECKS_PREPARED: _checks_prepared,
    Kind.EVALUATION_DONE: _evaluation_done,
    Kind.REVIEW_DONE: _review_done,
    Kind.CRITIQUE_DONE: _critique_done,
    Kind.REFINEMENT_DONE: _refinement_done,
    Kind.PHASE_SWITCHED: _phase_switched,
    Kind.ITERATION_ADVANCED: _iteration_advanced,
    Kind.PHASE_ERROR: _phase_error,
    Kind.STOP_REQUESTED: _stop_requested,
    Kind.STOPPED: _stopped,
    Kind.FAILED: _failed,
    Kind.BASELINE_DONE: judged,
    **dict.fromkeys((Kind.CALIBRATION_DONE, Kind.HYPOTHESIS_FORMED, *NOTES), _only_noted),
}
