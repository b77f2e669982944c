"""Assess the readiness of a draft: its clarity, its kind of work, and how hard it is to undo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.core.model.rules import Proof
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_setup import ConfirmedDraft
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import LoopError
from pytest_loop.inference.clarity import (
    Clarity,
    ClarityFacts,
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
# Proofs whose names in the draft differ from their values.
_KINDS = {Proof.REVIEW: "judge", Proof.ASSUMPTION: "manual"}


class UnclearError(LoopError):
    """The task cannot be measured; the text names what is missing."""


@dataclass(frozen=True)
class UserChoices:
    """The decisions of the user beyond the words of the task; a default value means no decision.

    `allow` are patterns of the files that may be edited. `limits` are in words, such as `5 USD`. `template_rules` are
    the ids of rules that only a built-in template states.
    """

    allow: tuple[str, ...] = ()
    is_artifact_named: bool = False
    are_rules_named: bool = False
    limits: tuple[str, ...] = ()
    template_rules: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Readiness:
    """The readiness of a draft; `missing` lists absent safety measures for work that is hard to undo."""

    clarity: Clarity
    shape: Shape
    workflow: Workflow
    reversibility: Reversibility
    missing: tuple[str, ...] = ()

    @property
    def confirmed_draft(self) -> ConfirmedDraft:
        """The readiness as the state of a run stores it."""
        return ConfirmedDraft(
            shape=self.shape.value,
            workflow=self.workflow.value,
            reversal=self.reversibility.kind.value,
            clarity=self.clarity.total,
        )

    def render_question(self, question: str) -> str:
        """Return `question` with its question mark, after a warning if safety measures are missing."""
        if not self.missing:
            return f"{question}?"
        return f"this is hard to take back, and lacks {' and '.join(self.missing)}: {question} all the same?"

    def render_lines(self, *, is_detailed: bool) -> Iterator[str]:
        """Render the readiness for the draft; raises `UnclearError` if it is not clear enough to start.

        `is_detailed` adds how the clarity was scored.
        """
        if is_detailed:
            kind = f"{self.workflow.value} ({_WORKFLOWS[self.workflow]})"
            yield f"workflow: {kind}, undo {self.reversibility.kind.value}: {self.reversibility.reason}"
        if is_detailed or self.shape is Shape.UNCLEAR:
            yield f"clarity: {self.clarity.total} of 10, {self.shape.value}"
            for point in self.clarity.points:
                yield f"  {point.dimension:<11} {point.score}  {point.reason}"
        if self.shape is Shape.UNCLEAR:
            is_task_clear = self.clarity.shape is not Shape.UNCLEAR
            reasons = ["SHAPE.md: its spec score is below 5"] if is_task_clear else []
            lines = "\n".join(f"  {reason}" for reason in (*reasons, *self.clarity.missing))
            raise UnclearError(f"this is not clear enough to start:\n{lines}")
        if self.reversibility.pre_check and not is_detailed:
            lacking = f", and lacks {'; '.join(self.missing)}" if self.missing else ""
            yield f"hard to take back ({self.reversibility.reason}){lacking}: -v says what to check before the start"
        elif self.reversibility.pre_check:
            yield from (f"pre-check {number}: {step}" for number, step in enumerate(self.reversibility.pre_check, 1))
            yield from (f"lacking: {measure}" for measure in self.missing)


def assess_readiness(state: RunState, choices: UserChoices, project: ProjectContext | None = None) -> Readiness:
    """Assess the draft of a run; use the stricter of its own clarity and that in the project's SHAPE.md.

    Do not refuse a vague task if the user named rules: its run asks questions on the way.
    """
    rules = tuple(_make_draft_rule(rule, choices.template_rules) for rule in state.criteria.goals)
    artifact = state.setup.artifact if state.setup.target is Target.ARTIFACT else ""
    clarity = score_clarity(
        ClarityFacts(
            task=state.task.prompt,
            rules=rules,
            limits=choices.limits,
            allow=choices.allow,
            artifact=artifact,
            is_artifact_named=choices.is_artifact_named,
        )
    )
    is_vague = clarity.shape is Shape.UNCLEAR
    shapes = [Shape.COLLEAGUE if is_vague and choices.are_rules_named else clarity.shape]
    if project and project.clarity is not None:
        shapes.append(choose_shape(project.clarity))
    is_separate = PurePosixPath(artifact).parent.name == state.task_alias
    paths = (*choices.allow, *filter(None, (artifact,)))
    reversibility = assess_reversibility(state.task.prompt, paths, is_separate=is_separate)
    return Readiness(
        clarity,
        find_strictest_shape(shapes),
        classify_workflow(state.task.prompt),
        reversibility,
        find_open_pre_checks(reversibility.kind, rules),
    )


def _make_draft_rule(rule: RunRule, template_rules: frozenset[str]) -> DraftRule:
    kind = _KINDS.get(rule.proof, rule.proof.value)
    if rule.is_test:
        kind = "tests"
    elif isinstance(rule.check, str):
        kind = "sentence"
    is_default = rule.id in template_rules
    return DraftRule(rule.id, kind, is_blocking=rule.is_blocking, must_not=rule.must_not, is_default=is_default)
