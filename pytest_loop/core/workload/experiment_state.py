"""The state of an experiment: the state of a run, with measurements, hypotheses and decisions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import ConfigDict, Field

from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.workload.analysis import Analysis, EditOption, TriedEdit
from pytest_loop.core.workload.hypotheses import (
    Hypothesis,
    HypothesisOutcome,
    OnPlateau,
    OnRegression,
    OptionDecision,
    Policy,
)
from pytest_loop.core.workload.measurement import Measurement


class Experiment(Value):
    """The decisions from the start of an experiment, and its results since.

    - `cases`, `held_out_cases`: all cases, and those of them that no composer sees.
    - `first_hypothesis`: the plan's hypothesis about the baseline, or the default one.
    - `measurements`: the last one is complete; of earlier ones only outcomes are kept.
    - `edit`, `tried`: the last edit, and all edits.
    - `analysis`, `files`: the analysis of the last measurement, and the hashes of the files that it is about.
    - `decision`, `regression`, `plateau`: the decisions about the last measurement.
    - `artifacts`: the files that may be edited.
    - `settled`: the iteration of the last plateau at which it was decided to continue; -1 if there was none.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", ignored_types=(cached_property,), defer_build=True)

    manifest: str
    workload: str
    cases: tuple[str, ...]
    artifacts: tuple[str, ...]
    policy: Policy = Policy()
    focus: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    held_out_cases: frozenset[str] = frozenset()
    plan: str = ""
    first_hypothesis: str = ""
    is_calibrated: bool | None = None
    measurements: tuple[Measurement, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    hypothesis_outcomes: tuple[HypothesisOutcome, ...] = ()
    edit: EditOption | None = None
    tried: tuple[TriedEdit, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    analysis: Analysis | None = None
    decision: OptionDecision | None = None
    regression: OnRegression | None = None
    plateau: OnPlateau | None = None
    settled: int = -1

    @cached_property
    def visible_measurements(self) -> tuple[Measurement, ...]:
        """The measurements without held-out cases: only these decide how the experiment continues."""
        return tuple(measurement.exclude_cases(self.held_out_cases) for measurement in self.measurements)

    @property
    def last(self) -> Measurement | None:
        return self.visible_measurements[-1] if self.visible_measurements else None

    @property
    def has_converged(self) -> bool:
        return self.last is not None and self.last.has_converged

    @property
    def is_edited(self) -> bool:
        """Whether an edit was made since the last measurement."""
        return self.decision is not None and self.decision.chosen is not None

    @property
    def is_at_baseline(self) -> bool:
        """Whether the baseline is measured, and no analysis of it exists yet."""
        return len(self.measurements) == 1 and self.analysis is None and not self.hypotheses

    @property
    def untested_hypothesis(self) -> Hypothesis | None:
        """The first hypothesis that has been measured and has no outcome yet, or None."""
        judged = {outcome.iteration for outcome in self.hypothesis_outcomes}
        last = self.measurements[-1].iteration if self.measurements else 0
        open_hypotheses = (
            hypothesis
            for hypothesis in self.hypotheses
            if hypothesis.iteration < last and hypothesis.iteration not in judged
        )
        return next(open_hypotheses, None)

    def count_held_out(self) -> tuple[int, int] | None:
        """Return how many held-out cases passed in the last measurement, and of how many; None if there are none."""
        results = self.measurements[-1].results if self.measurements else ()
        held_out = [result for result in results if result.id in self.held_out_cases]
        return (sum(result.passed for result in held_out), len(held_out)) if held_out else None

    def replace(self, **changes: Any) -> Experiment:
        """Return a copy; a model copy would keep cached properties."""
        return Experiment.model_validate({**dict(self), **changes})


class ExperimentState(RunState):
    """A run whose rules are the cases of a workload."""

    experiment: Experiment

    @property
    def is_ready_for_b(self) -> bool:
        """Always False: an experiment has one phase."""
        return False


def parse_state(data: Any) -> RunState:
    """Return the state of a run or of an experiment."""
    if isinstance(data, RunState):
        return data
    is_experiment = isinstance(data, dict) and "experiment" in data
    return (ExperimentState if is_experiment else RunState).model_validate(data)
