"""An experiment read back from its events: measurements, hypotheses, decisions and edits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import (
    AnalysisDone,
    BaselineDone,
    CalibrationDone,
    ExperimentStarted,
    HypothesisFormed,
    HypothesisJudged,
    MeasurementDone,
    OptionChosen,
    RegressionDetected,
)
from pytest_loop.core.events.run_payloads import EndPayload, Payload, RunStarted
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.analysis import Analysis, EditOption
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.core.workload.hypotheses import Hypothesis, HypothesisOutcome, OptionDecision
from pytest_loop.core.workload.measurement import Measurement


@dataclass
class ExperimentHistory:
    """The records of an experiment, by iteration in dictionaries; `settings` has the fields of the manifest.

    `measurements` omits the `held_out_cases` and starts with the baseline, which tests the `first_hypothesis`.
    `held_out` counts the held-out cases that pass in the last measurement, and all held-out cases.
    """

    settings: dict[str, object] = field(default_factory=dict)
    mode: str = "precision"
    held_out_cases: frozenset[str] = frozenset()
    held_out: tuple[int, int] | None = None
    calibration: CalibrationDone | None = None
    first_hypothesis: str = ""
    measurements: list[Measurement] = field(default_factory=list)
    hypotheses: dict[int, Hypothesis] = field(default_factory=dict)
    hypothesis_outcomes: dict[int, HypothesisOutcome] = field(default_factory=dict)
    analyses: dict[int, Analysis] = field(default_factory=dict)
    decisions: dict[int, OptionDecision] = field(default_factory=dict)
    edits: dict[int, EditOption] = field(default_factory=dict)
    regressions: dict[int, RegressionDetected] = field(default_factory=dict)
    stop_reason: str = ""

    @property
    def workload_id(self) -> str:
        return str(self.settings.get("workloadId") or "")

    @property
    def baseline(self) -> Measurement | None:
        return self.measurements[0] if self.measurements else None

    @property
    def final(self) -> Measurement | None:
        return self.measurements[-1] if self.measurements else None

    @property
    def iterations(self) -> list[int]:
        """The numbers of iterations with a hypothesis, an analysis, a decision or an edit, in order."""
        return sorted({*self.hypotheses, *self.analyses, *self.decisions, *self.edits})

    def pair_measurements(self) -> list[tuple[Measurement, Measurement]]:
        """Return the pairs of successive measurements, the earlier one first in each pair."""
        return list(pairwise(self.measurements))


def read_experiment(events: Iterable[Event]) -> ExperimentHistory:
    """Return the experiment that these events record; ignore other kinds of events."""
    history = ExperimentHistory()
    for event in events:
        _add_event(history, event)
    return history


def _add_event(history: ExperimentHistory, event: Event) -> None:
    if event.kind is Kind.RUN_STARTED:
        _add_start(history, event.payload)
    match event.payload:
        case CalibrationDone() as payload:
            history.calibration = payload
        case MeasurementDone() as payload:
            _add_measurement(history, payload)
        case EndPayload() as payload:
            history.stop_reason = payload.reason or ""
        case _:
            _add_iteration_event(history, event)


def _add_start(history: ExperimentHistory, payload: Payload) -> None:
    history.settings = dict(payload.model_extra or {})
    if isinstance(payload, ExperimentStarted):
        history.mode = payload.mode
        history.settings["mode"] = payload.mode
    if isinstance(payload, RunStarted) and isinstance(payload.state, ExperimentState):
        history.held_out_cases = payload.state.experiment.held_out_cases


def _add_measurement(history: ExperimentHistory, payload: MeasurementDone) -> None:
    measurement = payload.measurement
    if isinstance(payload, BaselineDone):
        history.first_hypothesis = payload.hypothesis
    history.measurements.append(measurement.exclude_cases(history.held_out_cases))
    held_out = [result.passed for result in measurement.results if result.id in history.held_out_cases]
    history.held_out = (sum(held_out), len(held_out)) if held_out else None


def _add_iteration_event(history: ExperimentHistory, event: Event) -> None:
    number = event.iteration
    match event.payload:
        case HypothesisFormed() as payload:
            history.hypotheses[number] = payload
        case HypothesisJudged() as payload:
            history.hypothesis_outcomes[payload.iteration] = payload
        case AnalysisDone() as payload:
            history.analyses[number] = payload.analysis
        case OptionChosen() as payload:
            history.decisions[number] = payload.decision
            if payload.option:
                history.edits[number] = payload.option
        case RegressionDetected() as payload:
            history.regressions[number] = payload
