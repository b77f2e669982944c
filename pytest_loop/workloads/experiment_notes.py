"""Make the events between the steps of an experiment: hypotheses, regressions, plateaus and the end."""

from __future__ import annotations

from pytest_loop.core.events.experiment_payloads import (
    ExperimentFailed,
    ExperimentStopped,
    HeldOutCount,
    HypothesisFormed,
    HypothesisJudged,
    PlateauReached,
    RegressionDetected,
)
from pytest_loop.core.events.run_payloads import Payload
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import (
    OnPlateau,
    OnRegression,
    count_flat_measurements,
    decide_on_plateau,
    decide_on_regression,
    form_hypothesis,
    judge_hypothesis,
)
from pytest_loop.core.workload.measurement import compare_measurements, find_best
from pytest_loop.core.workload.phase_proofs import LoopProof
from pytest_loop.errors import StateError
from pytest_loop.run.questions import Ask, ask_about_plateau, ask_about_regression
from pytest_loop.run.steps import end_run


def make_note(kind: Kind, state: ExperimentState, ask: Ask | None) -> Payload:
    """Make the payload of an event between steps; ask a person if `ask` is given and the policy is to ask."""
    experiment = state.experiment
    if kind is Kind.HYPOTHESIS_FORMED:
        return _form_hypothesis(experiment, state.iteration)
    if kind is Kind.HYPOTHESIS_JUDGED:
        return _judge_hypothesis(experiment)
    if kind is Kind.REGRESSION_DETECTED:
        return _note_regression(experiment, ask)
    return _note_plateau(state, ask)


def _form_hypothesis(experiment: Experiment, iteration: int) -> HypothesisFormed:
    """Predict the effect of the chosen edit."""
    if experiment.analysis is None or experiment.decision is None:
        raise StateError("expected an analysis and a decision about it, found none")
    hypothesis = form_hypothesis(experiment.analysis, experiment.decision, iteration)
    if hypothesis is None:
        raise StateError("expected an edit to predict something about, found none")
    return HypothesisFormed(**dict(hypothesis))


def _judge_hypothesis(experiment: Experiment) -> HypothesisJudged:
    """Compare the last measurement with the hypothesis before it."""
    before, after = experiment.visible_measurements[-2:]
    if experiment.untested_hypothesis is None:
        raise StateError("expected a hypothesis to judge, found none")
    return HypothesisJudged(**dict(judge_hypothesis(experiment.untested_hypothesis, before, after, experiment.guards)))


def _note_regression(experiment: Experiment, ask: Ask | None) -> RegressionDetected:
    """Decide how to continue after a regression."""
    measurements = experiment.visible_measurements
    action = decide_on_regression(measurements, experiment.policy, is_attended=ask is not None) or OnRegression.STOP
    change = compare_measurements(*measurements[-2:])
    cause = experiment.edit.name if experiment.edit else ""
    if ask and action is OnRegression.ASK:
        action = ask_about_regression(ask, change, cause)
    return RegressionDetected(regressions=change.regressions, fixed=change.fixed, likely_cause=cause, action=action)


def _note_plateau(state: ExperimentState, ask: Ask | None) -> PlateauReached:
    """Decide how to continue at a plateau: of several agents, the next one has its turn before the policy decides."""
    experiment = state.experiment
    measurements, settled = experiment.visible_measurements, experiment.settled
    flat = count_flat_measurements(measurements, settled)
    if next_agents := state.setup.agents[state.progress.agent_index + 1 :]:
        return PlateauReached(flat=flat, action=OnPlateau.CONTINUE, next_agent=next_agents[0])
    action = decide_on_plateau(measurements, experiment.policy, settled, is_attended=ask is not None) or OnPlateau.STOP
    if ask and action is OnPlateau.ASK:
        action = ask_about_plateau(ask, flat, find_best(measurements))
    return PlateauReached(flat=flat, action=action)


def end_experiment(command: Command, state: ExperimentState) -> Payload:
    """Make the payload of the event that ends an experiment, with a proof and the count of held-out cases."""
    ending = end_run(command, state)
    proof = LoopProof(
        iterations_completed=len(state.experiment.hypotheses),
        log_entries=state.progress.evaluations,
        exit_condition=ending.reason or "",
    )
    held_out = state.experiment.count_held_out()
    count = {"held_out": HeldOutCount(passing=held_out[0], total=held_out[1])} if held_out else {}
    fields = {name: getattr(ending, name) for name in ending.model_fields_set}
    payload_class = ExperimentFailed if command.kind is Kind.FAILED else ExperimentStopped
    return payload_class(**fields, proof=proof, **count)
