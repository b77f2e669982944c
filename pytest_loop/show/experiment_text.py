"""Render the draft, the events and the result of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import (
    AnalysisDone,
    BaselineDone,
    CalibrationDone,
    HypothesisFormed,
    HypothesisJudged,
    MeasurementDone,
    OptionChosen,
    PlateauReached,
    RegressionDetected,
)
from pytest_loop.core.events.run_payloads import Payload
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import limit_lines, list_names
from pytest_loop.core.workload.analysis import Analysis, EditOption
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import HypothesisOutcome, Truth, classify_trend
from pytest_loop.core.workload.measurement import compare_measurements

_NO_COMPOSER = "none: only the baseline can be measured (--loop-agent names one)"
_MAX_NAMES = 8
_MAX_LINES = 12
_TRUTH_WORDS = {
    Truth.UNTESTED: "untested",
    Truth.CONFIRMED: "confirmed",
    Truth.REJECTED: "rejected",
    Truth.PARTIALLY_CONFIRMED: "partly confirmed",
}


def render_experiment_draft(state: ExperimentState, *, is_attended: bool = True) -> Iterator[str]:
    """Render the draft of an experiment on one screen; if not attended, show the policies that replace `ask`."""
    experiment = state.experiment
    policy = experiment.policy
    limit = get_budgets(state)["usd"][1]
    yield f"workload    {shorten(experiment.workload, 80)} ({experiment.manifest})"
    yield f"task        {shorten(state.task.prompt, 100)}"
    yield f"cases       {len(experiment.cases)}" + _count_roles(experiment)
    yield f"may edit    {_list_names(experiment.artifacts)}"
    judge = f", judge {state.setup.judge}" if state.setup.judge else ""
    yield f"composer    {' then '.join(state.setup.agents) or _NO_COMPOSER}{judge}"
    yield f"mode        {policy.mode}"
    regression = policy.on_regression.value if policy.on_regression else "ask"
    policies = f"decide: {policy.decide.value}, plateau: {policy.on_plateau.value}, regression: {regression}"
    if not is_attended:
        policies = policies.replace("decide: ask", "decide: recommended").replace(": ask", ": stop")
    yield f"policies    {policies}"
    yield f"limits      {state.max_iterations} iterations" + (f", {limit:g} USD" if limit is not None else "")


def _count_roles(experiment: Experiment) -> str:
    roles = {
        "held out": experiment.held_out_cases,
        "to focus on": experiment.focus,
        "guards": experiment.guards,
        "excluded": experiment.excluded,
    }
    counts = [f"{len(names)} {role}" for role, names in roles.items() if names]
    return f" ({', '.join(counts)})" if counts else ""


def render_experiment_event(event: Event, state: ExperimentState) -> Iterator[str]:
    """Render the lines of an event; yield nothing for most events."""
    match event.payload:
        case CalibrationDone() as payload:
            yield from _render_calibration(payload)
        case MeasurementDone():
            yield from _render_measurement(event, state)
        case AnalysisDone(analysis=analysis):
            yield from _render_analysis(analysis)
        case OptionChosen() as payload:
            yield from _render_decision(payload)
        case payload:
            yield from _render_note(payload)


def _render_note(payload: Payload) -> Iterator[str]:
    match payload:
        case HypothesisJudged():
            yield from _render_hypothesis_outcome(payload)
        case RegressionDetected(likely_cause=cause, regressions=names, action=action):
            after = f" after {shorten(cause, 80)}" if cause else ""
            yield f"  REGRESSION{after}: {', '.join(names)} passed before; decided: {action.value}"
        case PlateauReached(flat=times, action=action, next_agent=agent):
            then = f" with {agent}" if agent else ""
            yield f"  PLATEAU: {times} times no better than the best; decided: {action.value}{then}"
        case HypothesisFormed():
            yield f"  prediction: {_list_names(payload.prediction)} will pass"


def _render_calibration(payload: CalibrationDone) -> Iterator[str]:
    for number, error in enumerate(payload.errors, 1):
        yield f"  try {number}: {shorten(error, 300)}"
    yield f"Calibration with {payload.case}: {'the pipeline works' if payload.passed else 'failed'}"


def _render_measurement(event: Event, state: ExperimentState) -> Iterator[str]:
    experiment = state.experiment
    if experiment.last is None:
        return
    where = f"Iteration {event.iteration}/{state.max_iterations}" if event.iteration else "Baseline"
    void = " | VOID" if state.evaluation and state.evaluation.void else ""
    trend_text = ""
    if len(experiment.visible_measurements) > 1:
        before, after = experiment.visible_measurements[-2:]
        change = compare_measurements(before, after)
        trend_text = f" | {classify_trend(before, after).value} (+{len(change.fixed)} -{len(change.regressions)})"
    yield f"{where} | {experiment.last}{trend_text}{void}"
    if experiment.last.failing:
        yield f"  failing: {_list_names(sorted(experiment.last.failing))}"
    if experiment.last.unmeasured:
        yield f"  not measured (infrastructure): {_list_names(sorted(experiment.last.unmeasured))}"
    if isinstance(event.payload, BaselineDone) and event.payload.hypothesis:
        yield f"  first hypothesis: {shorten(event.payload.hypothesis, 200)}"
    for finding in state.evaluation.findings if state.evaluation else ():
        yield f"  {finding.kind}: {shorten(finding.path or finding.rule)}: {shorten(finding.detail)}"


def _render_hypothesis_outcome(outcome: HypothesisOutcome) -> Iterator[str]:
    missed = f"; did not improve: {_list_names(outcome.missed)}" if outcome.missed else ""
    broken = f"; guards broken: {', '.join(outcome.guards)}" if outcome.guards else ""
    yield f"  hypothesis of iteration {outcome.iteration}: {_TRUTH_WORDS[outcome.truth]}{missed}{broken}"


def _render_analysis(analysis: Analysis) -> Iterator[str]:
    yield f"  root cause: {shorten(analysis.root_cause, 300)}"
    yield f"  hypothesis: {shorten(analysis.hypothesis.theory, 300)}"
    for number, option in enumerate(analysis.options, 1):
        yield from _render_option(number, option)


def _render_option(number: int, option: EditOption) -> Iterator[str]:
    """Render an option: its place, mechanism, edit, cases, risk and confidence; the first one is recommended."""
    worth = f"{option.confidence.value} confidence" + (", recommended" if number == 1 else "")
    yield f"  {number}. {shorten(option.name, 100)} [{shorten(option.place, 80)}] ({worth})"
    yield f"     why: {shorten(option.mechanism, 300)}"
    yield from limit_lines(list(_render_edit(option)), _MAX_LINES, "     ({:,} more lines)")
    worse = f", may break {_list_names(option.regresses)}" if option.regresses else ""
    yield f"     improves {_list_names(option.improves)}{worse}; risk: {shorten(option.risk, 100)}"


def _render_edit(option: EditOption) -> Iterator[str]:
    """Render the current and the proposed text as a diff without headers."""
    lines = unified_diff(option.current.splitlines(), option.proposed.splitlines(), n=1, lineterm="")
    for line in islice(lines, 2, None):
        if not line.startswith("@@"):
            yield f"     {line[0]} {shorten(line[1:], 120)}"


def _render_decision(payload: OptionChosen) -> Iterator[str]:
    decision, option = payload.decision, payload.option
    chosen = f"{decision.chosen}. {shorten(option.name, 100)}" if option else "no edit"
    yield f"  decided: {chosen} ({shorten(decision.reason, 100)})"
    for finding in payload.findings:
        yield f"  {finding.kind}: {shorten(finding.path)}: {shorten(finding.detail)}"


def render_experiment_end(experiment: Experiment) -> Iterator[str]:
    """Render the result of an experiment."""
    if not experiment.visible_measurements:
        return
    first, last = experiment.visible_measurements[0], experiment.visible_measurements[-1]
    net = len(last.passing) - len(first.passing)
    yield f"{shorten(experiment.workload, 80)}: baseline {first}, now {last}, net {net:+d}"
    confirmed = sum(outcome.truth is Truth.CONFIRMED for outcome in experiment.hypothesis_outcomes)
    if experiment.hypothesis_outcomes:
        yield f"hypotheses: {confirmed} of {len(experiment.hypothesis_outcomes)} confirmed"
    held_out = experiment.count_held_out()
    if held_out is not None:
        gap = len(last.passing) / max(1, len(last.results)) - held_out[0] / held_out[1]
        passing = f"{held_out[0]}/{held_out[1]} passing"
        yield f"held out: {passing} that no composer has seen, a gap of {100 * gap:.0f} points"


def _list_names(names: Sequence[str]) -> str:
    return list_names([shorten(name, 100) for name in names], _MAX_NAMES)
