"""How a draft is to be carried out: how clear it is, what kind of work it is, and how hard to take back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_loop.core.drafting import is_test
from pytest_loop.core.model import Proof
from pytest_loop.core.run import Manner, RunRule, RunState, Target
from pytest_loop.errors import LoopError
from pytest_loop.intake.clarity import Clarity, Draft, DraftRule, Shape, clarity, shape_of, shape_of_fit, strictest
from pytest_loop.intake.context import Context
from pytest_loop.intake.scope import Reversibility, Workflow, open_pre_checks, reversibility, workflow

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

    @property
    def manner(self) -> Manner:
        """As a run keeps it."""
        return Manner(
            shape=self.shape.value,
            workflow=self.workflow.value,
            reversal=self.undone.kind.value,
            clarity=self.clarity.total,
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
        yield f"workflow    {kind}, undo {self.undone.kind.value}: {self.undone.because}"
        points = ", ".join(f"{one.dimension} {one.score}" for one in self.clarity.points)
        yield f"clarity     {self.clarity.total} of 10, {self.shape.value}: {points}"
        if self.shape is Shape.UNCLEAR:
            missing = self.clarity.missing or ("SHAPE.md says that it does not fit a loop",)
            raise UnclearError("this is not clear enough to start:\n" + "\n".join(f"  {one}" for one in missing))
        for number, step in enumerate(self.undone.pre_check, 1):
            yield f"pre-check   {number}. {step}"
        if self.lacks:
            yield f"lacking     {'; '.join(self.lacks)}"


def reading(state: RunState, allow: Sequence[str] = (), said: Context | None = None) -> Reading:
    """How a run that begins like this is to be carried out; of several opinions about it the strictest counts."""
    said = said or Context()
    budgets = (f"{state.limits.usd:g} USD",) if state.limits.usd else ()
    rules = tuple(_draft_rule(rule) for rule in state.criteria.rules)
    points = clarity(
        Draft(
            task=state.task.prompt,
            rules=rules,
            max_iterations=state.max_iterations,
            budgets=budgets,
            allow=tuple(allow),
            artifact=state.artifact if state.target is Target.ARTIFACT else "",
        )
    )
    undone = reversibility(state.task.prompt, allow)
    shapes = [
        points.shape,
        *([shape_of(said.clarity)] if said.clarity is not None else []),
        *([shape_of_fit(said.fit)] if said.fit is not None else []),
    ]
    kind = workflow(state.task.prompt)
    return Reading(points, strictest(shapes), kind, undone, open_pre_checks(undone.kind, rules))


def _draft_rule(rule: RunRule) -> DraftRule:
    kind = _KINDS.get(rule.proof, rule.proof.value)
    if is_test(rule):
        kind = "tests"
    elif isinstance(rule.check, str):
        kind = "sentence"
    return DraftRule(rule.id, kind, is_blocking=rule.blocks, must_not=rule.must_not)


def workflow_gate(state: RunState) -> str:
    """What an agent has to do before anything else."""
    return Workflow(state.manner.workflow).gate if state.manner.workflow else ""
