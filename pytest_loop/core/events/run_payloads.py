"""The payloads of a run's events: one class per kind."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, field_serializer

from pytest_loop.core.events.run_decision import OptionalDecision
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.evaluation import Critique, Evaluation, Seal, SealFinding
from pytest_loop.core.model.rules import Phase, Severity, Value, Verdict
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_setup import Amount, Count
from pytest_loop.core.model.run_state import Blocked, Review, RuleChecks, RunState, Usage
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.core.workload.experiment_state import parse_state

_MAX_SECONDS = 1e9


def _parse_seconds(value: Any) -> float | None:
    """Return a duration in seconds, or None if it is negative, too long, or no number."""
    is_number = isinstance(value, (int, float)) and 0 <= value < _MAX_SECONDS
    return float(value) if is_number else None


class Payload(Value):
    """The contents of one event; keys of other tools are kept.

    `markers` are the keys that distinguish a payload from others of the same kind.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    kind: ClassVar[Kind | None] = None
    markers: ClassVar[tuple[str, ...]] = ()
    is_error: ClassVar[bool] = False
    is_baseline: ClassVar[bool] = False

    def dump(self) -> dict[str, Any]:
        """Return the payload as JSON data without defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)


class OtherPayload(Payload):
    """The payload of an unknown kind, or one that another tool writes differently."""


class StepPayload(Payload):
    """The fields of every step: its agent, the cost, the time, the lessons in the prompt, and edits put back.

    `prompt` and `answer` belong to the last request, and are shortened.
    """

    agent: str = ""
    usage: Usage = Field(default_factory=Usage)
    seconds: Annotated[float | None, BeforeValidator(_parse_seconds)] = None
    recalled: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    completes: ClassVar[Step | None] = None


class RunStarted(Payload):
    """The state that a run begins with."""

    kind = Kind.RUN_STARTED
    state: Annotated[RunState, BeforeValidator(parse_state)]

    @field_serializer("state")
    def _dump_state(self, state: RunState) -> dict[str, Any]:
        return state.model_dump(mode="json")


class RunAdopted(RunStarted):
    """A state that replaces a history which is damaged or was written by another tool."""

    kind = Kind.RUN_ADOPTED
    because: tuple[str, ...] = ()


class PlanCreated(StepPayload):
    kind = Kind.PLAN_CREATED
    completes = Step.PLAN
    plan: tuple[str, ...] = ()


class AcceptanceTestsPrepared(StepPayload):
    """Tests or rules that an agent wrote for the task before the work, and that are sealed now.

    `paths` are their files, `arguments` the files that sessions collect only if they are named.
    """

    kind = Kind.TESTS_PREPARED
    completes = Step.PREPARE
    paths: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    rules: tuple[RunRule, ...] = ()
    seal: Seal | None = None
    artifact_hash: str = ""
    findings: tuple[SealFinding, ...] = ()


class CandidateResult(Value):
    """The result of one of several candidates for an edit: whether it was `kept`, and how many `lines` it changed."""

    candidate: int
    agent: str
    kept: bool
    lines: int
    usage: Usage = Field(default_factory=Usage)
    changed: tuple[str, ...] | None = None
    score: float | None = None
    passed: bool | None = None
    failed: int | None = None
    void: bool = False
    error: str = ""


class EditPayload(StepPayload):
    """An edit by an agent: its report, its `change`, and all files that were `changed` since the run began.

    `error` is why the agent failed after the edit; the edit is evaluated nevertheless. `rewritten` names the file that
    the agent wrote most often, if more than once, and `rewrites` counts its writes.
    """

    artifact_hash: str | None = None
    exit_signal: bool | None = None
    blocked: Blocked | None = None
    findings: tuple[SealFinding, ...] = ()
    candidates: tuple[CandidateResult, ...] = ()
    report: str = ""
    error: str = ""
    diff: str = ""
    change: ChangedParts | None = None
    changed: tuple[str, ...] | None = None
    rewrites: int = 0
    rewritten: str = ""


class ArtifactCreated(EditPayload):
    kind = Kind.ARTIFACT_CREATED
    completes = Step.PRODUCE


class RefinementDone(EditPayload):
    kind = Kind.REFINEMENT_DONE
    completes = Step.REFINE
    previous_artifact_hash: str | None = None


class ChecksPrepared(StepPayload):
    kind = Kind.CHECKS_PREPARED
    completes = Step.PREPARE
    checks: tuple[RuleChecks, ...] = ()


class EvaluationDone(Evaluation, StepPayload):
    """The evaluation itself, and the decision that follows from it.

    `verdicts` has the ids of all rules by verdict and severity. `rewrites` is how often one file was
    written before this evaluation.
    """

    kind = Kind.EVALUATION_DONE
    completes = Step.EVALUATE
    verdicts: dict[Verdict, dict[Severity, list[str]]] = Field(default_factory=dict)
    rewrites: int = 0
    decision: OptionalDecision = None

    def extract_evaluation(self, phase: Phase) -> Evaluation:
        """Return the evaluation without the other fields, with the phase of the run."""
        fields = {name: getattr(self, name) for name in Evaluation.model_fields}
        return Evaluation.model_construct(**{**fields, "phase": phase})


class ReviewDone(Review, Payload):
    kind = Kind.REVIEW_DONE
    decision: OptionalDecision = None


class CritiqueDone(Critique, StepPayload):
    kind = Kind.CRITIQUE_DONE
    completes = Step.CRITIQUE


class PhaseSwitched(Payload):
    kind = Kind.PHASE_SWITCHED


class IterationAdvanced(Payload):
    kind = Kind.ITERATION_ADVANCED


class PhaseError(StepPayload):
    """A failed step; after a `final` error there is no retry. `findings` are edits put back after the failure."""

    kind = Kind.PHASE_ERROR
    is_error = True
    step: str = ""
    reason: str = ""
    final: bool = False
    findings: tuple[SealFinding, ...] = ()


class StopRequested(Payload):
    """A request to stop; `findings` are edits of the interrupted step that were put back."""

    kind = Kind.STOP_REQUESTED
    reason: str | None = None
    findings: tuple[SealFinding, ...] = ()


class LimitsRaised(Payload):
    """New limits of a run; a value below the current limit is ignored unless `is_exact` is true."""

    kind = Kind.LIMITS_RAISED
    max_iterations: Count = 1
    max_completed_phase_seconds: Count | None = None
    usd: Amount | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    is_exact: bool = False

    def dump(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True) if self.is_exact else super().dump()


class Answered(LimitsRaised):
    """An answer to the question of a stopped run; a limit that ended the run is raised for one more iteration.

    `confirmed` are manual rules that the answer confirms, `unseal` patterns of sealed files that agents may now edit.
    """

    kind = Kind.ANSWERED
    text: str = ""
    question: str = ""
    confirmed: tuple[str, ...] = ()
    unseal: tuple[str, ...] = ()


class EndPayload(Payload):
    """The reason why a run ended; the fields from `completed_phase_seconds` on are set only if a budget is used up."""

    reason: str | None = None
    decision: OptionalDecision = None
    completed_phase_seconds: float | None = None
    max_completed_phase_seconds: int | None = None
    overshoot_seconds: float | None = None
    last_completed_step: str | None = None

    def dump(self) -> dict[str, Any]:
        data = self.model_dump(mode="json", exclude_unset=True)
        return data | ({"decision": self.decision.dump()} if self.decision else {})


class Stopped(EndPayload):
    kind = Kind.STOPPED


class Failed(EndPayload):
    kind = Kind.FAILED
    is_error = True
