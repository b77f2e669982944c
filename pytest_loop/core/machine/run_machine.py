"""The state machine of a run: its transitions, its next commands, and the events that it refuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    Answered,
    IterationAdvanced,
    LimitsRaised,
    OtherPayload,
    Payload,
    ReviewDone,
    RunAdopted,
    Stopped,
)
from pytest_loop.core.machine.event_changes import apply_payload
from pytest_loop.core.machine.stop_reasons import STOP_ROWS, StopRow, find_row
from pytest_loop.core.model.run_state import RunState, State
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status, Step

Transitions = Mapping[tuple[Place, Kind], tuple[Place, ...]]

# The kinds of events that can happen at every place, and do not change it.
ANYWHERE = frozenset((Kind.PHASE_ERROR, Kind.STOP_REQUESTED, Kind.STOPPED, Kind.FAILED))


@dataclass(frozen=True)
class Command:
    """The next thing to do: a step, a switch of phase, the next iteration, or the end."""

    kind: Kind
    step: Step | None = None
    reason: Reason | None = None

    @property
    def is_success(self) -> bool:
        return self.reason is not None and find_row(self.reason).is_success


PRODUCE = Command(Kind.ARTIFACT_CREATED, Step.PRODUCE)
PREPARE = Command(Kind.CHECKS_PREPARED, Step.PREPARE)
PREPARE_TESTS = Command(Kind.TESTS_PREPARED, Step.PREPARE)
_COMMANDS = {
    Place.PLAN: Command(Kind.PLAN_CREATED, Step.PLAN),
    Place.PREPARE: PREPARE,
    Place.EVALUATE: Command(Kind.EVALUATION_DONE, Step.EVALUATE),
    Place.CRITIQUE: Command(Kind.CRITIQUE_DONE, Step.CRITIQUE),
    Place.REFINE: Command(Kind.REFINEMENT_DONE, Step.REFINE),
}


class IllegalTransition(Exception):  # noqa: N818 - a term of state machines
    """An event that cannot happen where the run stands: a bug, or a history that was edited."""

    def __init__(self, state: RunState, event: Event, reason: str) -> None:
        self.state = state
        self.event = event
        super().__init__(
            f"{event.event} cannot happen {_describe_place(state)}: {reason}; "
            "either the history was edited, or this is a bug worth reporting"
        )


def _describe_place(state: RunState) -> str:
    if state.is_over:
        return f"in a run that is over ({state.status.value}, {state.stop.reason})"
    return f"at {state.current_step.value} of iteration {state.iteration} (phase {state.phase.value})"


class Machine(ABC, Generic[State]):
    """Base class of the machines of runs and experiments.

    A transition leads to the first of its places that has work to do, or else to the last. `rows` are the reasons to
    stop.
    """

    transitions: ClassVar[Transitions]
    first_places: ClassVar[tuple[Place, ...]]
    rows: ClassVar[tuple[StopRow, ...]]

    @abstractmethod
    def begin(self, state: State) -> State:
        """Return the state of a new run at its first place."""

    def list_next_commands(self, state: State) -> tuple[Command, ...]:
        """Return the commands to carry out next, side by side if there are two; none if and only if the run is over."""
        if state.is_over:
            return ()
        reason = self.find_stop_reason(state)
        if reason is None:
            return self.list_due_commands(state)
        kind = Kind.FAILED if find_row(reason).status is Status.FAILED else Kind.STOPPED
        return (Command(kind, reason=reason),)

    def apply(self, state: State, event: Event) -> State:
        """Return the state after an event; unknown ones change nothing, impossible ones raise IllegalTransition."""
        payload = event.payload
        if event.kind is None or isinstance(payload, RunAdopted):
            return state
        if not self._is_possible(state, payload):
            raise IllegalTransition(state, event, self._explain_refusal(state, event))
        after = self.apply_payload(state, payload)
        return after.replace(current_step=self._find_next_place(after, event.kind), updated_at=event.ts)

    def find_stop_reason(self, state: State) -> Reason | None:
        """Return the first reason to stop that applies at the current place and holds."""
        return next((row.reason for row in self.list_applicable_rows(state) if row.holds(state)), None)

    def list_applicable_rows(self, state: State) -> tuple[StopRow, ...]:
        """Return the reasons that may end the run at its current place.

        After an evaluation that no person has answered, all of them apply; elsewhere only interruptions, and after
        REFINE also reasons with `is_after_edit`.
        """
        if state.current_step is Place.CRITIQUE and not state.is_ready_for_b and not state.is_answered:
            return self.rows
        if state.current_step is Place.CRITIQUE and not state.criteria.has_phase_b:
            return ()  # the switch to phase B decides at once, without an evaluation
        return tuple(row for row in self.rows if row.is_interruption or (state.is_refined and row.is_after_edit))

    def list_due_commands(self, state: State) -> tuple[Command, ...]:
        """Return the next commands unless there is a reason to stop."""
        if state.is_refined:
            return (Command(Kind.ITERATION_ADVANCED),)
        return (_COMMANDS[state.current_step],)

    def apply_payload(self, state: State, payload: Payload) -> State:
        """Return the state with the changes of a payload, except its place."""
        return apply_payload(state, payload)

    @abstractmethod
    def has_work(self, state: State, place: Place, /) -> bool:
        """Return whether a place that a transition may skip has something to do."""

    def _find_next_place(self, state: State, kind: Kind) -> Place:
        *others, last = self.transitions.get((state.current_step, kind), (state.current_step,))
        return next((place for place in others if self.has_work(state, place)), last)

    def _is_possible(self, state: State, payload: Payload) -> bool:
        """Return whether an event with this payload can happen now."""
        if isinstance(payload, OtherPayload):
            return False
        if isinstance(payload, Answered):
            return not state.stop.passed
        if isinstance(payload, LimitsRaised):
            return not state.is_over or _can_reopen(state, payload)
        if state.is_over:
            return False
        if isinstance(payload, Stopped):
            row = find_row(payload.reason or Reason.USER_STOP)
            return not row.is_success or self._is_confirmed(row, state)
        if isinstance(payload, ReviewDone):
            successes = [row for row in self.rows if row.is_success]
            return state.signals.review is None and any(self._is_confirmed(row, state) for row in successes)
        if isinstance(payload, IterationAdvanced) and state.iteration >= state.max_iterations:
            return False
        return payload.kind in ANYWHERE or payload.kind in [command.kind for command in self.list_due_commands(state)]

    def _is_confirmed(self, row: StopRow, state: State) -> bool:
        """Return whether the last evaluation confirms a reason, even if a reason of higher precedence holds too."""
        return row in self.rows and state.current_step is Place.CRITIQUE and row.holds(state)

    def _explain_refusal(self, state: State, event: Event) -> str:
        due = [command.kind for command in self.list_due_commands(state)]
        if state.is_over:
            return "expected nothing more"
        if isinstance(event.payload, Stopped):
            return f"the last evaluation does not bear out {event.payload.reason!r}"
        if event.kind in due:
            return "its payload cannot be read"
        return f"expected {' or '.join(kind.value for kind in due)}"


def _can_reopen(state: RunState, payload: LimitsRaised) -> bool:
    row = find_row(state.stop.reason)
    if row.reopens_on_resume or row.reason is Reason.UNCONFIRMED:
        return True
    return bool(payload.model_fields_set.intersection(row.reopened_by))


class RunMachine(Machine[RunState]):
    """The machine of an ordinary run."""

    first_places = (Place.PLAN, Place.PREPARE, Place.EVALUATE)
    transitions: ClassVar[Transitions] = {
        (Place.PLAN, Kind.PLAN_CREATED): (Place.PRODUCE_PREPARE, Place.EVALUATE),
        (Place.PRODUCE_PREPARE, Kind.ARTIFACT_CREATED): (Place.PRODUCE_PREPARE, Place.EVALUATE),
        (Place.PRODUCE_PREPARE, Kind.CHECKS_PREPARED): (Place.PRODUCE_PREPARE, Place.EVALUATE),
        (Place.PREPARE, Kind.TESTS_PREPARED): (Place.PREPARE, Place.EVALUATE),
        (Place.PREPARE, Kind.CHECKS_PREPARED): (Place.EVALUATE,),
        (Place.EVALUATE, Kind.EVALUATION_DONE): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.PHASE_SWITCHED): (Place.PREPARE, Place.EVALUATE, Place.CRITIQUE),
        (Place.CRITIQUE, Kind.REVIEW_DONE): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.CRITIQUE_DONE): (Place.REFINE,),
        (Place.REFINE, Kind.REFINEMENT_DONE): (Place.REFINE,),
        (Place.REFINE, Kind.ITERATION_ADVANCED): (Place.PLAN,),
    }
    rows = tuple(row for row in STOP_ROWS if row.in_runs)

    def begin(self, state: RunState) -> RunState:
        """Return the state at its first place: existing files are evaluated before an agent edits them.

        A missing document and `edits_first` begin with an agent's plan; with `work_seal`, an agent writes tests first.
        """
        if state.setup.work_seal is not None:
            return state.replace(current_step=Place.PREPARE)
        if state.is_document_missing or state.setup.edits_first:
            return state
        return state.replace(current_step=Place.PREPARE if state.unprepared_rules else Place.EVALUATE)

    def list_due_commands(self, state: RunState) -> tuple[Command, ...]:
        if state.current_step is Place.PRODUCE_PREPARE:
            awaited = state.progress.awaited or (Step.PRODUCE,)
            return tuple(PRODUCE if step is Step.PRODUCE else PREPARE for step in awaited)
        if state.current_step is Place.PREPARE and state.setup.work_seal is not None:
            return (PREPARE_TESTS,)
        if state.current_step is Place.CRITIQUE and state.is_ready_for_b:
            return (Command(Kind.PHASE_SWITCHED),)
        return super().list_due_commands(state)

    def has_work(self, state: RunState, place: Place, /) -> bool:
        if place is Place.PRODUCE_PREPARE:
            return bool(state.progress.awaited)
        if place is Place.PREPARE:
            return bool(state.unprepared_rules)
        return state.evaluation is None or state.evaluation.phase is not state.phase


RUN_MACHINE = RunMachine()
