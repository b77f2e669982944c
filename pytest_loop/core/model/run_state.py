"""A run as it is persisted: its state, and the events whose fold that state is."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from pytest_loop.core.model.evaluation import (
    Assessment,
    Complaint,
    Critique,
    Issue,
    Novelty,
    RuleResult,
    Sealed,
    SealFinding,
)
from pytest_loop.core.model.rules import Phase, Value
from pytest_loop.core.model.run_criteria import Level, RunCriteria, RunRule, build_levels
from pytest_loop.core.model.vocabulary import Kind, Opinion, Place, Reason, Status, Step, Target
from pytest_loop.core.workload.experiment_state import Notebook

__all__ = [
    "HASH_SHOWN",
    "Assessment",
    "Attempt",
    "Best",
    "Blocked",
    "Breakers",
    "Complaint",
    "Critique",
    "Event",
    "Failing",
    "Issue",
    "Kind",
    "Level",
    "Limits",
    "Manner",
    "Notebook",
    "Novelty",
    "Opinion",
    "Place",
    "Reason",
    "Review",
    "RuleResult",
    "RunCriteria",
    "RunRule",
    "RunState",
    "SealFinding",
    "Sealed",
    "Status",
    "Step",
    "Stop",
    "Target",
    "Task",
    "Trouble",
    "Usage",
    "build_levels",
]  # fmt: skip

HASH_SHOWN = 8

# Counts and limits are whole numbers: neither "600", nor 600.5, nor true.
Count = Annotated[int, Field(strict=True, ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Task(Value):
    """What the person wants."""

    prompt: str
    ideal_result: str = ""


class Usage(Value):
    """What agents reported; unknown is None, never 0."""

    tokens: Annotated[int, Field(ge=0)] | None = None
    cost_usd: Amount | None = None

    def plus(self, other: Usage) -> Usage:
        return Usage(tokens=_sum(self.tokens, other.tokens), cost_usd=_sum(self.cost_usd, other.cost_usd))


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


class Blocked(Value):
    """An agent's honest word that a rule cannot be met."""

    rule: str
    reason: str


class Trouble(Value):
    """A step that went wrong: how often in a row, and how the last time."""

    times: int
    reason: str = ""


class Stop(Value):
    """Whether the run ended well, and why it ended."""

    passed: bool = False
    reason: str = ""


class Limits(Value):
    """What a run may use; None is no limit."""

    usd: Amount | None = 25.0
    tokens: int | None = None


class Breakers(Value):
    """How often something may repeat before the run stops, and what ends it early; 0 turns one off."""

    stuck: int = 5
    same_error: int = 3
    thrashing: int = 5
    stagnation: int = 2
    min_gain: float = 0.02
    plateau: float = 0.0
    diminishing: float = 0.0
    confidence: float = 0.0


class Manner(Value):
    """How a run is carried out, as its draft said and somebody confirmed.

    `shape` says who is asked on the way, `workflow` what kind of work it is, `reversal` how hard it is to take back.
    `says_when` is whether somebody said when it is done, and it was not only inferred from what kind of work it is.
    """

    shape: str = "tool"
    workflow: str = ""
    reversal: str = "2B"
    clarity: int | None = None
    confirmed_by: str = ""
    says_when: bool = True


class Review(Value):
    """What a person said of work that passes every rule."""

    status: Opinion
    feedback: str = ""


class Failing(Value):
    """A rule that does not pass: what it says, and since which iteration it has said that without a break."""

    signature: str = ""
    since: int


class Attempt(Value):
    """What an iteration came to.

    `open` names the first of the rules that do not pass, `unmet` counts them. `failing` has all of them, and
    `same_since` the iteration since which they have been the same; it is kept for the last attempt only.
    """

    iteration: int
    phase: Phase
    score: float
    passed: bool
    void: bool = False
    artifact_hash: str = ""
    rewrites: int = 0
    open: tuple[str, ...] = ()
    unmet: int = 0
    mended: int = 0
    broken: int = 0
    failing: dict[str, Failing] = Field(default_factory=dict)
    same_since: int = 1


class Best(Value):
    """The best evaluation of the phase last judged; a void one is never it."""

    iteration: int
    score: float
    phase: Phase = Phase.A


class RunState(Value):
    """A run as `run.json` holds it: the fold of its history plus what was frozen at the start.

    `awaited` are the steps that PRODUCE_PREPARE still waits for. `open_seconds` belong to a step that is not complete:
    one that will be tried again, or one of two that run side by side. `rung` is the agent whose turn it is, since the
    iteration `rung_since`. `notebook` is there where a workload is tuned.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    run_id: str
    task_alias: str
    status: Status = Status.RUNNING
    iteration: Count = 1
    max_iterations: Count = 4
    max_completed_phase_seconds: Count | None = None
    completed_phase_seconds: Amount = 0
    phase_started_epoch_seconds: float | None = None
    phase: Phase = Phase.A
    current_step: Place = Place.PLAN
    task: Task
    criteria: RunCriteria = Field(default_factory=RunCriteria)
    plan: tuple[str, ...] = ()
    prepared_checks: dict[str, Any] | None = None
    evaluation: Assessment | None = None
    critique: Critique | None = None
    stop: Stop = Field(default_factory=Stop)
    last_score: float = 0.0
    stagnation_count: int = 0
    created_at: str = ""
    updated_at: str = ""

    target: Target = Target.ARTIFACT
    artifact: str = ""
    agents: tuple[str, ...] = ()
    rung: int = 0
    rung_since: int = 1
    candidates: Count = 1
    judge: str = ""
    arguments: tuple[str, ...] = ()
    inferred: str = ""
    limits: Limits = Field(default_factory=Limits)
    breakers: Breakers = Field(default_factory=Breakers)
    awaited: tuple[Step, ...] = ()
    open_seconds: Amount = 0
    last_completed_step: str = ""
    troubles: dict[str, Trouble] = Field(default_factory=dict)
    artifact_hash: str = ""
    manner: Manner = Field(default_factory=Manner)
    sealed: Sealed | None = None
    review: Review | None = None
    tampered: tuple[SealFinding, ...] = ()
    exit_signal: bool | None = None
    blocked: Blocked | None = None
    stop_asked: str = ""
    usage: Usage = Field(default_factory=Usage)
    attempts: tuple[Attempt, ...] = ()
    best: Best | None = None
    evaluations: int = 0
    notebook: Notebook | None = None

    @model_validator(mode="before")
    @classmethod
    def _judged_in_its_phase(cls, data: Any) -> Any:
        """Other tools do not note the phase of an evaluation: it is the run's own."""
        found = data.get("evaluation") if isinstance(data, dict) else None
        if not isinstance(found, dict) or "phase" in found:
            return data
        return {**data, "evaluation": {**found, "phase": data.get("phase", Phase.A)}}

    @property
    def is_over(self) -> bool:
        return self.status is not Status.RUNNING

    @property
    def error_reason(self) -> str:
        """What went wrong last and was not made good."""
        return next((one.reason for one in reversed(self.troubles.values())), "")

    def trouble_with(self, step: Step) -> str:
        """What went wrong the last time that this step was tried, if it was not made good."""
        found = self.troubles.get(step.value)
        return found.reason if found else ""


class Event(Value):
    """One line of `history.jsonl`; unknown kinds and keys are kept and ignored."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    ts: str
    run_id: str
    iteration: int
    phase: Phase
    step: str
    event: str
    status: str = "ok"
    payload: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, state: RunState, kind: str, payload: dict[str, Any], ts: str) -> Event:
        """What happens to a run where it stands; the baseline of an experiment is its iteration 0."""
        return cls(
            ts=ts,
            run_id=state.run_id,
            iteration=0 if kind == Kind.BASELINE_DONE.value else state.iteration,
            phase=state.phase,
            step=state.current_step.value,
            event=kind,
            status="error" if kind in (Kind.PHASE_ERROR.value, Kind.FAILED.value) else "ok",
            payload=payload,
        )
