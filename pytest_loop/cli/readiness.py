"""How a draft is to be carried out: how clear it is, what kind of work it is, and how hard to take back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_loop.core.judging.draft import is_test_rule
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.model.rules import Proof
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import ConfirmedDraft, RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import LoopError
from pytest_loop.inference.clarity import (
    Clarity,
    Draft,
    DraftRule,
    Shape,
    choose_shape,
    find_strictest_shape,
    score_clarity,
)
from pytest_loop.inference.project_context import Context
from pytest_loop.inference.reversibility import (
    Reversibility,
    Workflow,
    assess_reversibility,
    classify_workflow,
    find_open_pre_checks,
)

_WORKFLOWS = {Workflow.BUILD: "build", Workflow.DEBUG: "debug", Workflow.REFACTOR: "refactor"}
# What the verdict of a rule rests on, as a draft calls it.
_KINDS = {Proof.REVIEW: "judge", Proof.ASSUMPTION: "manual"}


class UnclearError(LoopError):
    """The task cannot be measured; the text says what is missing."""


@dataclass(frozen=True)
class Reading:
    """What a draft comes to; `lacks` is what it should have before somebody starts what is hard to take back."""

    clarity: Clarity
    shape: Shape
    workflow: Workflow
    undone: Reversibility
    lacks: tuple[str, ...] = ()
    says_when: bool = True

    @property
    def manner(self) -> ConfirmedDraft:
        """As a run keeps it."""
        return ConfirmedDraft(
            shape=self.shape.value,
            workflow=self.workflow.value,
            reversal=self.undone.kind.value,
            clarity=self.clarity.total,
            says_when=self.says_when,
        )

    @property
    def question(self) -> str:
        """What is asked before it begins."""
        if not self.lacks:
            return "start?"
        return f"this is hard to take back, and lacks {' and '.join(self.lacks)}: start all the same?"

    def lines(self) -> Iterator[str]:
        """For the draft; raises `UnclearError` where it is not clear enough to start."""
        kind = f"{self.workflow.value} ({_WORKFLOWS[self.workflow]})"
        yield f"workflow    {kind}, undo {self.undone.kind.value}: {self.undone.reason}"
        yield f"clarity     {self.clarity.total} of 10, {self.shape.value}"
        for one in self.clarity.points:
            yield f"  {one.dimension:<11} {one.score}  {one.reason}"
        if self.shape is Shape.UNCLEAR:
            own = ("SHAPE.md: its spec score is below 5",) if self.clarity.shape is not Shape.UNCLEAR else ()
            missing = "\n".join(f"  {one}" for one in (*own, *self.clarity.missing))
            raise UnclearError(f"this is not clear enough to start:\n{missing}")
        for number, step in enumerate(self.undone.pre_check, 1):
            yield f"pre-check   {number}. {step}"
        if self.lacks:
            yield f"lacking     {'; '.join(self.lacks)}"


def reading(
    state: RunState, allow: Sequence[str] = (), said: Context | None = None, *, says_when: bool = True
) -> Reading:
    """How a run that begins like this is to be carried out; of several opinions about it the strictest counts."""
    said = said or Context()
    limits = {name: limit for name, (_, limit) in get_budgets(state).items() if limit is not None}
    rules = tuple(_draft_rule(rule) for rule in state.criteria.rules)
    points = score_clarity(
        Draft(
            task=state.task.prompt,
            rules=rules,
            max_iterations=state.max_iterations,
            budgets=tuple(f"{limit:g} {name}" for name, limit in limits.items()),
            allow=tuple(allow),
            artifact=state.setup.artifact if state.setup.target is Target.ARTIFACT else "",
        )
    )
    artifact = (state.setup.artifact,) if state.setup.target is Target.ARTIFACT else ()
    undone = assess_reversibility(state.task.prompt, (*allow, *artifact))
    shape = find_strictest_shape([points.shape, *([choose_shape(said.clarity)] if said.clarity is not None else [])])
    kind = classify_workflow(state.task.prompt)
    return Reading(points, shape, kind, undone, find_open_pre_checks(undone.kind, rules), says_when)


def _draft_rule(rule: RunRule) -> DraftRule:
    kind = _KINDS.get(rule.proof, rule.proof.value)
    if is_test_rule(rule):
        kind = "tests"
    elif isinstance(rule.check, str):
        kind = "sentence"
    return DraftRule(rule.id, kind, is_blocking=rule.is_blocking, must_not=rule.must_not)


def workflow_gate(state: RunState) -> str:
    """What an agent has to do before anything else."""
    return Workflow(state.setup.draft.workflow).instruction if state.setup.draft.workflow else ""
