"""The state machine of an experiment: calibration, baseline, and events about hypotheses, regressions, plateaus."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, ClassVar

from pytest_loop.core.events.experiment_payloads import (
    AnalysisDone,
    BaselineDone,
    CalibrationDone,
    HypothesisFormed,
    HypothesisJudged,
    MeasurementDone,
    OptionChosen,
    PlateauReached,
    PoliciesChanged,
    RegressionDetected,
)
from pytest_loop.core.events.run_payloads import Answered, LimitsRaised, Payload
from pytest_loop.core.machine.event_changes import Changes
from pytest_loop.core.machine.run_machine import RUN_MACHINE, Command, Machine, Transitions
from pytest_loop.core.machine.stop_reasons import STOP_ROWS, StopRow
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Place, Step
from pytest_loop.core.workload.analysis import TriedEdit
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import (
    Hypothesis,
    HypothesisOutcome,
    OnPlateau,
    OnRegression,
    decide_on_plateau,
    decide_on_regression,
)
from pytest_loop.core.workload.measurement import CaseResult, Measurement, suggest_cases


class ExperimentMachine(Machine[ExperimentState]):
    """The machine of an experiment."""

    first_places = (Place.PREPARE,)
    transitions: ClassVar[Transitions] = {
        (Place.PREPARE, Kind.CALIBRATION_DONE): (Place.EVALUATE,),
        (Place.EVALUATE, Kind.BASELINE_DONE): (Place.CRITIQUE,),
        (Place.EVALUATE, Kind.EVALUATION_DONE): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.HYPOTHESIS_JUDGED): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.REGRESSION_DETECTED): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.PLATEAU_REACHED): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.REVIEW_DONE): (Place.CRITIQUE,),
        (Place.CRITIQUE, Kind.CRITIQUE_DONE): (Place.REFINE,),
        (Place.REFINE, Kind.REFINEMENT_DONE): (Place.REFINE,),
        (Place.REFINE, Kind.HYPOTHESIS_FORMED): (Place.REFINE,),
        (Place.REFINE, Kind.ITERATION_ADVANCED): (Place.EVALUATE, Place.CRITIQUE),
    }
    rows = tuple(row for row in STOP_ROWS if row.in_experiments)

    def begin(self, state: ExperimentState) -> ExperimentState:
        return state.replace(current_step=Place.PREPARE)

    def list_applicable_rows(self, state: ExperimentState) -> tuple[StopRow, ...]:
        """Return no reason to stop while events about the last measurement are due: they come before the end."""
        if state.current_step is Place.CRITIQUE and _find_due_kind(state.experiment):
            return ()
        return super().list_applicable_rows(state)

    def list_due_commands(self, state: ExperimentState) -> tuple[Command, ...]:
        place, experiment = state.current_step, state.experiment
        if place is Place.PREPARE:
            return (Command(Kind.CALIBRATION_DONE, Step.PREPARE),)
        if place is Place.EVALUATE and not experiment.measurements:
            return (Command(Kind.BASELINE_DONE, Step.EVALUATE),)
        if place is Place.CRITIQUE and (kind := _find_due_kind(experiment)):
            return (Command(kind),)
        if state.is_refined and _is_hypothesis_due(experiment, state.iteration):
            return (Command(Kind.HYPOTHESIS_FORMED),)
        return super().list_due_commands(state)

    def has_work(self, state: ExperimentState, _place: Place, /) -> bool:
        """Return whether there is an edit to measure."""
        return state.experiment.is_edited

    def apply_payload(self, state: ExperimentState, payload: Payload) -> ExperimentState:
        changes = _compute_experiment_changes(payload, state.experiment)
        after = super().apply_payload(state, payload)
        after = after.replace(experiment=state.experiment.replace(**changes)) if changes else after
        return after.replace(**_compute_run_changes(payload, state))


def _compute_run_changes(payload: Payload, state: ExperimentState) -> Changes:
    """Return the fields outside of the experiment that an event changes: sealed plugins, the composer, the place."""
    seal = state.setup.seal
    match payload:
        case BaselineDone() if seal is not None and seal.plugins is None:
            return {"seal": seal.model_copy(update={"plugins": payload.plugins})}
        case PlateauReached(next_agent=agent) if agent:
            return {"agent_index": state.progress.agent_index + 1, "agent_since": state.iteration + 1}
        case LimitsRaised() if state.experiment.is_calibrated is False:
            return {"current_step": Place.PREPARE}
    return {}


EXPERIMENT_MACHINE = ExperimentMachine()


def select_machine(state: RunState) -> Machine[Any]:
    """Return the machine of a run or of an experiment."""
    return EXPERIMENT_MACHINE if isinstance(state, ExperimentState) else RUN_MACHINE


def _find_due_kind(experiment: Experiment) -> Kind | None:
    """Return the kind of the next event that is due after the last measurement, or None if there is none."""
    measurements, policy = experiment.visible_measurements, experiment.policy
    if experiment.untested_hypothesis is not None:
        return Kind.HYPOTHESIS_JUDGED
    if experiment.regression is None and decide_on_regression(measurements, policy, is_attended=False) is not None:
        return Kind.REGRESSION_DETECTED
    if experiment.plateau is not None or experiment.has_converged or experiment.regression is OnRegression.STOP:
        return None
    plateau = decide_on_plateau(measurements, policy, experiment.settled, is_attended=False)
    return None if plateau is None else Kind.PLATEAU_REACHED


def _is_hypothesis_due(experiment: Experiment, iteration: int) -> bool:
    """Return whether the edit of this iteration has no hypothesis yet."""
    return experiment.is_edited and not any(hypothesis.iteration == iteration for hypothesis in experiment.hypotheses)


@singledispatch
def _compute_experiment_changes(_payload: Payload, _experiment: Experiment) -> Changes:
    """Return the fields of the experiment that an event changes; most kinds change none."""
    return {}


@_compute_experiment_changes.register
def _record_calibration(payload: CalibrationDone, _experiment: Experiment) -> Changes:
    return {"is_calibrated": payload.passed}


@_compute_experiment_changes.register
def _record_measurement(payload: MeasurementDone, experiment: Experiment) -> Changes:
    """Add a measurement; earlier ones are reduced to their outcomes."""
    earlier = (_keep_outcomes(measurement) for measurement in experiment.measurements)
    cleared = dict.fromkeys(("analysis", "decision", "regression", "plateau"))
    return {"measurements": (*earlier, payload.measurement), **cleared}


def _keep_outcomes(measurement: Measurement) -> Measurement:
    results = tuple(CaseResult(id=result.id, outcome=result.outcome) for result in measurement.results)
    return Measurement(iteration=measurement.iteration, results=results)


@_compute_experiment_changes.register
def _record_baseline(payload: BaselineDone, experiment: Experiment) -> Changes:
    """Add the baseline; suggest a focus and guards if the user named none."""
    focus, guards = suggest_cases(payload.measurement, experiment.held_out_cases)
    changes = _record_measurement(payload, experiment)
    return {**changes, "focus": experiment.focus or focus, "guards": experiment.guards or guards}


@_compute_experiment_changes.register
def _record_analysis(payload: AnalysisDone, _experiment: Experiment) -> Changes:
    return {"analysis": payload.analysis, "files": payload.files, "decision": None}


@_compute_experiment_changes.register
def _record_choice(payload: OptionChosen, experiment: Experiment) -> Changes:
    """Record the decision, and the edit with the cases that failed when it was made."""
    if payload.option is None or experiment.last is None:
        return {"decision": payload.decision}
    tried = TriedEdit(edit=payload.option.edit, failing=experiment.last.failing)
    return {"decision": payload.decision, "edit": payload.option, "tried": (*experiment.tried, tried)}


@_compute_experiment_changes.register
def _record_hypothesis(payload: HypothesisFormed, experiment: Experiment) -> Changes:
    return {"hypotheses": (*experiment.hypotheses, Hypothesis.model_validate(dict(payload)))}


@_compute_experiment_changes.register
def _record_hypothesis_outcome(payload: HypothesisJudged, experiment: Experiment) -> Changes:
    return {"hypothesis_outcomes": (*experiment.hypothesis_outcomes, HypothesisOutcome.model_validate(dict(payload)))}


@_compute_experiment_changes.register
def _record_regression(payload: RegressionDetected, _experiment: Experiment) -> Changes:
    return {"regression": payload.action}


@_compute_experiment_changes.register
def _record_plateau(payload: PlateauReached, experiment: Experiment) -> Changes:
    return _compute_plateau_changes(experiment, payload.action)


def _compute_plateau_changes(experiment: Experiment, action: OnPlateau) -> Changes:
    """Store the action; if the experiment continues, the next plateau is counted from here."""
    if action is OnPlateau.CONTINUE and experiment.measurements:
        return {"plateau": action, "settled": experiment.measurements[-1].iteration}
    return {"plateau": action}


@_compute_experiment_changes.register
def _reset_failed_calibration(_payload: LimitsRaised, experiment: Experiment) -> Changes:
    return {"is_calibrated": None} if experiment.is_calibrated is False else {}


@_compute_experiment_changes.register
def _record_answer(payload: Answered, experiment: Experiment) -> Changes:
    """Continue an experiment that a policy has stopped, with another edit than the one that caused a regression."""
    changes = _reset_failed_calibration(payload, experiment)
    if experiment.regression is OnRegression.STOP:
        changes["regression"] = OnRegression.DIFFERENT
    if experiment.plateau is OnPlateau.STOP:
        changes |= _compute_plateau_changes(experiment, OnPlateau.CONTINUE)
    return changes


@_compute_experiment_changes.register
def _record_policies(payload: PoliciesChanged, experiment: Experiment) -> Changes:
    """Continue an experiment that a policy has stopped, if the new policy allows it."""
    changes = _reset_failed_calibration(payload, experiment)
    policies: Changes = {}
    if experiment.regression is OnRegression.STOP and payload.on_regression:
        changes["regression"] = policies["on_regression"] = payload.on_regression
    if experiment.plateau is OnPlateau.STOP and payload.on_plateau:
        changes |= _compute_plateau_changes(experiment, payload.on_plateau)
        policies["on_plateau"] = payload.on_plateau
    return {**changes, "policy": experiment.policy.model_copy(update=policies)}
