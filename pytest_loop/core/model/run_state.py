"""A run as it is persisted: the contents of `run.json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field

from pytest_loop.core.model.attempt import Attempt, Best
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.escalation import Answer
from pytest_loop.core.model.evaluation import Critique, Evaluation, SealFinding
from pytest_loop.core.model.rules import Phase, Value
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_setup import Amount, Count, Setup
from pytest_loop.core.model.vocabulary import Place, ReviewStatus, Status, Step, Target

SHORT_HASH_LENGTH = 8
# The name under which a person confirms that an agent rightly changed no file.
UNCHANGED_FILES = "the unchanged files"
State = TypeVar("State", bound="RunState")


class Task(Value):
    """The request of the user."""

    prompt: str
    ideal_result: str = ""


class Usage(Value):
    """Tokens and costs that agents reported; unknown is None, never 0.

    `estimated_usd` is the price of tokens whose cost is unknown, by the table that `estimated_by` names.
    """

    tokens: Annotated[int, Field(ge=0)] | None = None
    cost_usd: Amount | None = None
    estimated_usd: Amount | None = None
    estimated_by: str = ""

    def plus(self, other: Usage) -> Usage:
        return Usage(
            tokens=sum_known((self.tokens, other.tokens)),
            cost_usd=sum_known((self.cost_usd, other.cost_usd)),
            estimated_usd=sum_known((self.estimated_usd, other.estimated_usd)),
            estimated_by=other.estimated_by or self.estimated_by,
        )


def sum_known(numbers: Iterable[Any]) -> Any:
    """Return the sum of the numbers that are not None, or None if all are."""
    amounts = [number for number in numbers if number is not None]
    return sum(amounts) if amounts else None


class Blocked(Value):
    """An agent's claim that a rule cannot be met."""

    rule: str
    reason: str


class StepErrors(Value):
    """How often a step failed in a row, and the last reason."""

    times: int
    reason: str = ""


class Stop(Value):
    """Whether the run ended well, and why it ended."""

    passed: bool = False
    reason: str = ""


class RuleChecks(Value):
    """The concrete checks that an agent made of one rule's sentence."""

    rule_id: str
    check: Any = None


class PreparedChecks(Value):
    """All prepared checks; keys of other tools are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    checks: tuple[RuleChecks, ...] = ()


class Review(Value):
    """A person's opinion of work that passes every rule."""

    status: ReviewStatus
    feedback: str = ""


class Progress(Value):
    """The progress of a run, accumulated from its events.

    - `awaited`: the steps that PRODUCE_PREPARE still waits for.
    - `open_seconds`: the time of a step that is not complete: it will be tried again, or another runs beside it.
    - `agent_index`, `agent_since`: the current agent, and the iteration in which it began.
    - `rewritten`, `rewrites`: the file that the last edit wrote most often, and how often.
    - `put_back`: the kinds of edits that were undone, by the path of the file.
    - `has_searched_edits`: whether the built-in search has edited something, without any person or model.
    """

    artifact_hash: str = ""
    last_change: ChangedParts | None = None
    awaited: tuple[Step, ...] = ()
    open_seconds: Amount = 0
    last_completed_step: str = ""
    step_errors: dict[str, StepErrors] = Field(default_factory=dict)
    usage: Usage = Field(default_factory=Usage)
    evaluations: int = 0
    attempts: tuple[Attempt, ...] = ()
    best: Best | None = None
    agent_index: int = 0
    agent_since: int = 1
    rewrites: int = 0
    rewritten: str = ""
    put_back: dict[str, str] = Field(default_factory=dict)
    has_searched_edits: bool = False


class Signals(Value):
    """Statements of agents and people about ending the run, and evidence of tampering since the last evaluation.

    `answers` are what people said when the run had stopped, `confirmed_rules` the manual rules that they confirmed.
    """

    exit_signal: bool | None = None
    blocked: Blocked | None = None
    review: Review | None = None
    stop_request: str = ""
    answers: tuple[Answer, ...] = ()
    confirmed_rules: tuple[str, ...] = ()
    tampering: tuple[SealFinding, ...] = ()


_GROUPS: dict[str, type[Value]] = {"setup": Setup, "progress": Progress, "signals": Signals}


class RunState(Value):
    """The state that the events of a run lead to; other tools of the format share the fields before `setup`.

    `stagnation_count` is the number of evaluations in a row without a gain on `last_score`.
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
    prepared_checks: PreparedChecks | None = None
    evaluation: Evaluation | None = None
    critique: Critique | None = None
    stop: Stop = Field(default_factory=Stop)
    last_score: float = 0.0
    stagnation_count: int = 0
    created_at: str = ""
    updated_at: str = ""

    setup: Setup = Field(default_factory=Setup)
    progress: Progress = Field(default_factory=Progress)
    signals: Signals = Field(default_factory=Signals)

    def replace(self: State, **changes: Any) -> State:
        """Return a copy with changed fields of the state or of its groups; raise TypeError for an unknown field."""
        update = {name: changes.pop(name) for name in tuple(changes) if name in type(self).model_fields}
        for group, group_class in _GROUPS.items():
            fields = {name: changes.pop(name) for name in tuple(changes) if name in group_class.model_fields}
            if fields:
                update[group] = update.get(group, getattr(self, group)).model_copy(update=fields)
        if changes:
            raise TypeError(f"a run has no {', '.join(changes)}")
        return self.model_copy(update=update)

    @property
    def is_over(self) -> bool:
        return self.status is not Status.RUNNING

    @property
    def is_ready_for_b(self) -> bool:
        """Whether phase A passes, so that phase B decides."""
        return self.phase is Phase.A and self.evaluation is not None and self.evaluation.is_reached

    @property
    def is_document_missing(self) -> bool:
        """Whether the run writes a document that does not exist yet."""
        return self.setup.target is Target.ARTIFACT and not self.progress.artifact_hash

    @property
    def is_refined(self) -> bool:
        """Whether the critique has been answered, so that the next iteration begins."""
        return self.current_step is Place.REFINE and self.critique is None

    @property
    def is_answered(self) -> bool:
        """Whether a person has answered the last evaluation, so that only the next one may end the run."""
        answers = self.signals.answers
        return bool(answers) and answers[-1].evaluations == self.progress.evaluations

    @property
    def has_agent_worked(self) -> bool:
        """Whether an agent has edited something before the last evaluation."""
        return self.iteration > 1 or bool(self.plan)

    @property
    def is_rejected(self) -> bool:
        """Whether a person wants something else, although the rules pass."""
        return self.signals.review is not None and self.signals.review.status is ReviewStatus.REJECT

    @property
    def is_review_pending(self) -> bool:
        return self.signals.review is not None and self.signals.review.status is ReviewStatus.PENDING

    @property
    def has_empty_edit(self) -> bool:
        """Whether an agent has worked without changing a file of the project, and no person confirmed that."""
        start = self.setup.seal.start_digest if self.setup.seal else ""
        if UNCHANGED_FILES in self.signals.confirmed_rules:
            return False
        return bool(self.plan and start) and self.progress.artifact_hash == start

    @property
    def unprepared_rules(self) -> tuple[str, ...]:
        """The active rules in plain words that have no concrete checks yet."""
        prepared = {check.rule_id for check in self.prepared_checks.checks} if self.prepared_checks else set()
        active = self.criteria.get_active_rules(self.phase)
        return tuple(rule.id for rule in active if isinstance(rule.check, str) and rule.id not in prepared)

    @property
    def last_error(self) -> str:
        """The reason of the last error of any step; empty if each failed step has succeeded since."""
        return next((errors.reason for errors in reversed(self.progress.step_errors.values())), "")

    def get_error(self, step: Step) -> str:
        """Return the reason of the last error of a step; empty if the step has not failed since its last success."""
        errors = self.progress.step_errors.get(step.value)
        return errors.reason if errors else ""
