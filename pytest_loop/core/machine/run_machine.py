"""The run as a state machine: a table of transitions, what has to happen next, and what cannot happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from pytest_loop.core.machine.event_changes import awaited_steps, changed, unprepared
from pytest_loop.core.machine.stop_reasons import is_borne_out, is_ready_for_b, is_refined, stop_reason
from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.run_state import (
    Amount,
    Count,
    Event,
    Kind,
    Limits,
    Place,
    Reason,
    RunState,
    Status,
    Step,
    Stop,
    Target,
)
from pytest_loop.core.model.vocabulary import known_reason
from pytest_loop.core.workload.experiment_state import Notebook, due_note, is_hypothesis_due, reconsidered

__all__ = [
    "ANYWHERE", "FIRST_PLACES", "REOPENED_BY", "TRANSITIONS", "Command", "IllegalTransition", "awaited_steps",
    "beginning", "commands", "started", "step", "unprepared",
]  # fmt: skip

# Where a run can begin: see `beginning`.
FIRST_PLACES = (Place.PLAN, Place.PREPARE, Place.EVALUATE)

# Where a run stands and what happened there; then it goes to the first of these places that has something to do.
TRANSITIONS: dict[tuple[Place, Kind], tuple[Place, ...]] = {
    (Place.PLAN, Kind.PLAN_CREATED): (Place.PRODUCE_PREPARE, Place.EVALUATE),
    (Place.PRODUCE_PREPARE, Kind.ARTIFACT_CREATED): (Place.PRODUCE_PREPARE, Place.EVALUATE),
    (Place.PRODUCE_PREPARE, Kind.CHECKS_PREPARED): (Place.PRODUCE_PREPARE, Place.EVALUATE),
    (Place.PREPARE, Kind.CHECKS_PREPARED): (Place.EVALUATE,),
    (Place.EVALUATE, Kind.EVALUATION_DONE): (Place.CRITIQUE,),
    (Place.CRITIQUE, Kind.PHASE_SWITCHED): (Place.PREPARE, Place.EVALUATE, Place.CRITIQUE),
    (Place.CRITIQUE, Kind.REVIEW_DONE): (Place.CRITIQUE,),
    (Place.CRITIQUE, Kind.CRITIQUE_DONE): (Place.REFINE,),
    (Place.REFINE, Kind.REFINEMENT_DONE): (Place.REFINE,),
    (Place.REFINE, Kind.ITERATION_ADVANCED): (Place.PLAN, Place.EVALUATE, Place.CRITIQUE),
    # Only where a workload is tuned.
    (Place.PREPARE, Kind.CALIBRATION_DONE): (Place.EVALUATE,),
    (Place.EVALUATE, Kind.BASELINE_DONE): (Place.CRITIQUE,),
    (Place.CRITIQUE, Kind.HYPOTHESIS_JUDGED): (Place.CRITIQUE,),
    (Place.CRITIQUE, Kind.REGRESSION_DETECTED): (Place.CRITIQUE,),
    (Place.CRITIQUE, Kind.PLATEAU_REACHED): (Place.CRITIQUE,),
    (Place.REFINE, Kind.HYPOTHESIS_FORMED): (Place.REFINE,),
}
# These can happen anywhere, and leave the run where it stands.
ANYWHERE = frozenset((Kind.PHASE_ERROR, Kind.STOP_REQUESTED, Kind.STOPPED, Kind.FAILED))
# What has repeated too often, or changed too little: where such a run goes on, that is counted anew.
_BREAKERS = frozenset(
    one.value
    for one in (
        Reason.STUCK,
        Reason.SAME_ERROR,
        Reason.THRASHING,
        Reason.QUALITY_PLATEAU,
        Reason.DIMINISHING_RETURNS,
    )
)
# A run that ended for this reason goes on when one of these limits is raised.
REOPENED_BY = {
    Reason.ITERATION_LIMIT.value: ("max_iterations",),
    Reason.BUDGET_EXCEEDED.value: ("max_completed_phase_seconds", "usd", "tokens"),
    Reason.STAGNATION.value: ("max_iterations", "max_completed_phase_seconds"),
    **dict.fromkeys(_BREAKERS, ("max_iterations",)),
    Reason.REGRESSION.value: ("on_regression",),
    Reason.PLATEAU.value: ("on_plateau",),
}

_HAS_WORK: dict[Place, Callable[[RunState], bool]] = {
    Place.PLAN: lambda state: state.notebook is None,
    Place.PRODUCE_PREPARE: lambda state: bool(state.awaited),
    Place.PREPARE: lambda state: bool(unprepared(state)),
    Place.EVALUATE: lambda state: _is_unjudged(state),
}


def _is_unjudged(state: RunState) -> bool:
    """Whether there is something that no evaluation speaks of; an iteration of an experiment may be skipped."""
    if state.notebook is not None:
        return state.notebook.is_edited
    return state.evaluation is None or state.evaluation.phase is not state.phase


@dataclass(frozen=True)
class Command:
    """What must happen now: a step, a switch of phase, the next iteration, or the end."""

    kind: Kind
    step: Step | None = None
    reason: Reason | None = None

    @property
    def is_success(self) -> bool:
        return self.reason is not None and self.reason.is_success


_AWAITED = {
    Step.PRODUCE: Command(Kind.ARTIFACT_CREATED, Step.PRODUCE),
    Step.PREPARE: Command(Kind.CHECKS_PREPARED, Step.PREPARE),
}
_NEXT = {
    Place.PLAN: Command(Kind.PLAN_CREATED, Step.PLAN),
    Place.PREPARE: _AWAITED[Step.PREPARE],
    Place.EVALUATE: Command(Kind.EVALUATION_DONE, Step.EVALUATE),
    Place.CRITIQUE: Command(Kind.CRITIQUE_DONE, Step.CRITIQUE),
    Place.REFINE: Command(Kind.REFINEMENT_DONE, Step.REFINE),
}


class IllegalTransition(Exception):  # noqa: N818 - the table's own word
    """An event that cannot happen where the run stands: a bug, or a history that somebody edited."""

    def __init__(self, state: RunState, event: Event) -> None:
        self.state = state
        self.event = event
        super().__init__(f"{event.event} cannot happen {_where(state)}: {_why_not(state, event)}")


def _where(state: RunState) -> str:
    if state.is_over:
        return f"in a run that is over ({state.status.value}, {state.stop.reason})"
    return f"at {state.current_step.value} of iteration {state.iteration} (phase {state.phase.value})"


def _why_not(state: RunState, event: Event) -> str:
    reason = event.payload.get("reason")
    if state.is_over:
        why = "expected nothing more"
    elif event.event == Kind.STOPPED.value:
        why = f"the last evaluation does not bear out {reason!r}"
    else:
        why = f"expected {' or '.join(one.kind.value for one in _due(state))}"
    return f"{why}; either the history was edited, or this is a bug worth reporting"


def commands(state: RunState) -> tuple[Command, ...]:
    """What must happen now; nothing exactly when the run is over."""
    if state.is_over:
        return ()
    reason = stop_reason(state)
    if reason is None:
        return _due(state)
    return (Command(Kind.FAILED if reason.status is Status.FAILED else Kind.STOPPED, reason=reason),)


def _due(state: RunState) -> tuple[Command, ...]:
    """What comes next unless there is a reason to stop."""
    if state.current_step is Place.PRODUCE_PREPARE:
        return tuple(_AWAITED[one] for one in state.awaited or (Step.PRODUCE,))
    if state.current_step is Place.CRITIQUE and is_ready_for_b(state):
        return (Command(Kind.PHASE_SWITCHED),)
    if state.notebook is not None and (own := _due_in_experiment(state, state.notebook)):
        return (own,)
    if is_refined(state):
        return (Command(Kind.ITERATION_ADVANCED),)
    return (_NEXT[state.current_step],)


def _due_in_experiment(state: RunState, book: Notebook) -> Command | None:
    """What an experiment asks for that other runs do not."""
    if state.current_step is Place.PREPARE:
        return Command(Kind.CALIBRATION_DONE, Step.PREPARE)
    if state.current_step is Place.EVALUATE and not book.measurements:
        return Command(Kind.BASELINE_DONE, Step.EVALUATE)
    if state.current_step is Place.CRITIQUE and (note := due_note(book)):
        return Command(note)
    if is_refined(state) and is_hypothesis_due(book, state.iteration):
        return Command(Kind.HYPOTHESIS_FORMED)
    return None


def step(state: RunState, event: Event) -> RunState:
    """The state after an event; unknown events change nothing, impossible ones are refused."""
    kind = next((one for one in Kind if one.value == event.event), None)
    if kind is None:
        return state
    if not _is_possible(state, kind, event.payload):
        raise IllegalTransition(state, event)
    if kind is Kind.LIMITS_RAISED:
        return _reopened(state, event)
    after = changed(state, kind, event.payload)
    return after.model_copy(update={"current_step": _place(after, kind), "updated_at": event.ts})


def _is_possible(state: RunState, kind: Kind, payload: dict[str, Any]) -> bool:
    if kind is Kind.LIMITS_RAISED:
        return not state.is_over or _can_reopen(state, payload)
    if state.is_over:
        return False
    if kind is Kind.STOPPED:
        reason = known_reason(str(payload.get("reason", "")))
        return not reason.is_success or is_borne_out(reason, state)
    if kind is Kind.REVIEW_DONE:
        return state.review is None and any(is_borne_out(reason, state) for reason in Reason if reason.is_success)
    if kind is Kind.ITERATION_ADVANCED and state.iteration >= state.max_iterations:
        return False
    return kind in ANYWHERE or kind in [one.kind for one in _due(state)]


def _place(after: RunState, kind: Kind) -> Place:
    *others, last = TRANSITIONS.get((after.current_step, kind), (after.current_step,))
    return next((place for place in others if _HAS_WORK[place](after)), last)


class _Raised(Value):
    """Limits that were raised; a lower one changes nothing."""

    max_iterations: Count = 1
    max_completed_phase_seconds: Count | None = None
    usd: Amount | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


def _can_reopen(state: RunState, payload: dict[str, Any]) -> bool:
    if state.stop.reason == Reason.UNCONFIRMED.value:
        return True
    return any(name in payload for name in REOPENED_BY.get(state.stop.reason, ()))


def _reopened(state: RunState, event: Event) -> RunState:
    """A higher limit opens a run again that a limit has stopped; what was not confirmed has to be judged again."""
    raised = _Raised.model_validate(event.payload)
    limits = Limits(usd=_higher(state.limits.usd, raised.usd), tokens=_higher(state.limits.tokens, raised.tokens))
    seconds = _higher(state.max_completed_phase_seconds, raised.max_completed_phase_seconds)
    changes: dict[str, Any] = {
        "limits": limits,
        "max_iterations": max(state.max_iterations, raised.max_iterations),
        "max_completed_phase_seconds": seconds,
        "updated_at": event.ts,
    }
    if state.is_over:
        changes |= {"status": Status.RUNNING, "stop": Stop(), "stop_asked": "", "stagnation_count": 0}
    if state.stop.reason in _BREAKERS:
        changes["rung_since"] = state.iteration + 1
    if state.stop.reason == Reason.UNCONFIRMED.value:
        changes["current_step"] = Place.EVALUATE
    if state.notebook is not None:
        changes["notebook"] = reconsidered(state.notebook, event.payload)
    return state.model_copy(update=changes)


def _higher(limit: Any, raised: Any) -> Any:
    return limit if limit is None or raised is None else max(limit, raised)


def beginning(state: RunState) -> RunState:
    """Where a new run begins: what is there already is judged before anybody is asked to improve it."""
    if state.notebook is not None:
        return state.model_copy(update={"current_step": Place.PREPARE})
    if state.target is Target.ARTIFACT and not state.artifact_hash:
        return state
    place = Place.PREPARE if unprepared(state) else Place.EVALUATE
    return state.model_copy(update={"current_step": place})


def started(event: Event) -> RunState:
    """The state that a run begins with: what `run_started` carries."""
    return RunState.model_validate(event.payload["state"])
