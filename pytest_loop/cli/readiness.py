"""Assess the readiness of a draft: its clarity, its kind of work, and how hard it is to undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_loop.core.judging.run_draft import is_test_rule
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
from pytest_loop.inference.project_context import ProjectContext
from pytest_loop.inference.reversibility import Reversibility, assess_reversibility, find_open_pre_checks
from pytest_loop.inference.workflow import Workflow, classify_workflow

_WORKFLOWS = {Workflow.BUILD: "build", Workflow.DEBUG: "debug", Workflow.REFACTOR: "refactor"}
# Names of proofs in the draft that differ from those of the model.
_KINDS = {Proof.REVIEW: "judge", Proof.ASSUMPTION: "manual"}


class UnclearError(LoopError):
    """The task cannot be measured; the text names what is missing."""


@dataclass(frozen=True)
class Readiness:
    """The readiness of a draft; `missing` are safety measures for work that is hard to undo."""

    clarity: Clarity
    shape: Shape
    workflow: Workflow
    reversibility: Reversibility
    missing: tuple[str, ...] = ()
    says_when_done: bool = True

    @property
    def confirmed_draft(self) -> ConfirmedDraft:
        """The readiness as the state of a run stores it."""
        return ConfirmedDraft(
            shape=self.shape.value,
            workflow=self.workflow.value,
            reversal=self.reversibility.kind.value,
            clarity=self.clarity.total,
            says_when=self.says_when_done,
        )

    @property
    def question(self) -> str:
        """The question before the start."""
        if not self.missing:
            return "start?"
        return f"this is hard to take back, and lacks {' and '.join(self.missing)}: start all the same?"

    def render_lines(self) -> Iterator[str]:
        """Render the readiness for the draft; raises `UnclearError` if it is not clear enough to start."""
        kind = f"{self.workflow.value} ({_WORKFLOWS[self.workflow]})"
        yield f"workflow    {kind}, undo {self.reversibility.kind.value}: {self.reversibility.reason}"
        yield f"clarity     {self.clarity.total} of 10, {self.shape.value}"
        for point in self.clarity.points:
            yield f"  {point.dimension:<11} {point.score}  {point.reason}"
        if self.shape is Shape.UNCLEAR:
            is_by_shape_file = self.clarity.shape is not Shape.UNCLEAR
            reasons = ["SHAPE.md: its spec score is below 5"] if is_by_shape_file else []
            lines = "\n".join(f"  {reason}" for reason in (*reasons, *self.clarity.missing))
            raise UnclearError(f"this is not clear enough to start:\n{lines}")
        for number, step in enumerate(self.reversibility.pre_check, 1):
            yield f"pre-check   {number}. {step}"
        if self.missing:
            yield f"lacking     {'; '.join(self.missing)}"


def assess_readiness(
    state: RunState, allow: Sequence[str] = (), project: ProjectContext | None = None, *, says_when_done: bool = True
) -> Readiness:
    """Assess the draft of a run; of its own clarity and that of the project the stricter one counts."""
    limits = {name: limit for name, (_, limit) in get_budgets(state).items() if limit is not None}
    rules = tuple(_make_draft_rule(rule) for rule in state.criteria.rules)
    artifact = state.setup.artifact if state.setup.target is Target.ARTIFACT else ""
    clarity = score_clarity(
        Draft(
            task=state.task.prompt,
            rules=rules,
            max_iterations=state.max_iterations,
            budgets=tuple(f"{limit:g} {name}" for name, limit in limits.items()),
            allow=tuple(allow),
            artifact=artifact,
        )
    )
    reversibility = assess_reversibility(state.task.prompt, (*allow, *filter(None, (artifact,))))
    shapes = [clarity.shape]
    if project and project.clarity is not None:
        shapes.append(choose_shape(project.clarity))
    return Readiness(
        clarity,
        find_strictest_shape(shapes),
        classify_workflow(state.task.prompt),
        reversibility,
        find_open_pre_checks(reversibility.kind, rules),
        says_when_done,
    )


def _make_draft_rule(rule: RunRule) -> DraftRule:
    kind = _KINDS.get(rule.proof, rule.proof.value)
    if is_test_rule(rule):
        kind = "tests"
    elif isinstance(rule.check, str):
        kind = "sentence"
    return DraftRule(rule.id, kind, is_blocking=rule.is_blocking, must_not=rule.must_not)
