"""The payloads of an experiment's events, with what only experiments record."""

from __future__ import annotations

from pydantic import Field

from pytest_loop.core.events.run_payloads import (
    CritiqueDone,
    EndPayload,
    EvaluationDone,
    Failed,
    LimitsRaised,
    Payload,
    RefinementDone,
    RunStarted,
    StepPayload,
    Stopped,
)
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.core.workload.analysis import Analysis, EditOption
from pytest_loop.core.workload.hypotheses import Hypothesis, HypothesisOutcome, OnPlateau, OnRegression, OptionDecision
from pytest_loop.core.workload.measurement import Measurement
from pytest_loop.core.workload.phase_proofs import BaselineProof, CalibrationProof, LoopProof, StartProof


class ExperimentStarted(RunStarted):
    """The state that an experiment begins with; the settings of its manifest are extra keys."""

    markers = ("proof",)
    mode: str = "precision"
    proof: StartProof


class CalibrationDone(StepPayload):
    kind = Kind.CALIBRATION_DONE
    completes = Step.PREPARE
    case: str
    passed: bool
    attempts: int = 0
    errors: tuple[str, ...] = ()
    proof: CalibrationProof | None = None


class MeasurementDone(EvaluationDone):
    """An evaluation in which every rule is a case; `metrics` are the numbers of cases in words."""

    markers = ("measurement",)
    measurement: Measurement
    metrics: str = ""


class BaselineDone(MeasurementDone):
    """The measurement before the first edit, as iteration 0, and the hypothesis about it.

    `plugins` are the only ones that later sessions may load.
    """

    kind = Kind.BASELINE_DONE
    is_baseline = True
    hypothesis: str = ""
    plugins: tuple[str, ...] = ()
    proof: BaselineProof | None = None


class AnalysisDone(CritiqueDone):
    """The composer's analysis, and the hashes of the files that it is about."""

    markers = ("analysis",)
    analysis: Analysis
    files: dict[str, str] = Field(default_factory=dict)
    findings: tuple[SealFinding, ...] = ()


class OptionChosen(RefinementDone):
    """The decision about an analysis, and the edit that was made."""

    markers = ("decision",)
    decision: OptionDecision
    option: EditOption | None = None


class HypothesisFormed(Hypothesis, Payload):
    kind = Kind.HYPOTHESIS_FORMED


class HypothesisJudged(HypothesisOutcome, Payload):
    kind = Kind.HYPOTHESIS_JUDGED


class RegressionDetected(Payload):
    kind = Kind.REGRESSION_DETECTED
    regressions: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    likely_cause: str = ""
    action: OnRegression


class PlateauReached(Payload):
    """Measurements without progress; `next_agent` composes from here on, if the run has another one."""

    kind = Kind.PLATEAU_REACHED
    flat: int
    action: OnPlateau
    next_agent: str = ""


class PoliciesChanged(LimitsRaised):
    """Limits that were raised, and policies that no longer stop the experiment."""

    markers = ("on_regression", "on_plateau")
    on_regression: OnRegression | None = None
    on_plateau: OnPlateau | None = None


class HeldOutCount(Value):
    """The number of held-out cases that pass, and of all held-out cases."""

    passing: int
    total: int


class ExperimentEnd(EndPayload):
    """The end of an experiment, with its proof and the result of held-out cases."""

    markers = ("proof",)
    proof: LoopProof
    held_out: HeldOutCount | None = None


class ExperimentStopped(ExperimentEnd, Stopped):
    kind = Kind.STOPPED


class ExperimentFailed(ExperimentEnd, Failed):
    kind = Kind.FAILED
