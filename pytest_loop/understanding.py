"""What a task in plain words comes to in a project: what tells that it is done, how clear that is, or why nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.core.drafting import is_test
from pytest_loop.core.run import RunRule, RunState, Target
from pytest_loop.errors import LoopError
from pytest_loop.intake.clarity import Clarity, Draft, DraftRule, Shape, clarity
from pytest_loop.intake.phrases import Asked, asked
from pytest_loop.intake.project import read_project
from pytest_loop.intake.proposal import Adoption, Proposal, adoption, rule_file, rules
from pytest_loop.intake.scope import reversibility, workflow
from pytest_loop.intake.synthesis import infer
from pytest_loop.intake.vague import Refusal

_WORKFLOWS = {"A": "build", "B": "debug", "C": "refactor"}


class UnclearError(LoopError):
    """The task cannot be measured; the text says what is missing."""


@dataclass(frozen=True)
class Understood:
    """The words of a task, and the criteria that were inferred from them where nobody named any."""

    asked: Asked
    proposal: Proposal | None = None

    @property
    def rules(self) -> str:
        """A rule file with what was inferred; empty where the project's own tests are all there is."""
        return rule_file(rules(self.proposal)) if self.proposal else ""

    def paths(self, everything: Sequence[str]) -> tuple[str, ...]:
        """What has to be collected beside the rules that were inferred: all tests, or those that a rule names."""
        criteria = self.proposal.criteria if self.proposal else ()
        if any(one.is_own_tests for one in criteria):
            return tuple(everything)
        return tuple(dict.fromkeys(target for one in criteria for target in one.targets))

    @property
    def origins(self) -> dict[str, str]:
        """Where each rule came from, by its id."""
        made = rules(self.proposal) if self.proposal else ()
        return {str(one.entry["id"]): ", ".join(map(str, one.sources)) or "the task" for one in made}

    def notes(self) -> Iterator[str]:
        """What a person should know of the inference before the first iteration."""
        if self.proposal is None:
            return
        yield f"inferred    {self.proposal.criterion} ({self.proposal.confidence.value}): {self._because()}"
        for one in self.proposal.criteria:
            if one.missing:
                yield f"cannot run  `{one.command}`: {one.missing} is not installed here"
        yield from (f"note        {text}" for text in (*self.proposal.warnings, *self.proposal.unmeasured))

    def _because(self) -> str:
        return "; ".join(self.proposal.rationale) if self.proposal else ""


def understood(task: str, root: Path) -> Understood:
    """Infer what tells that a task is done; raises `UnclearError` where nothing does, or nobody could be sure of it.

    Whoever starts a run confirms its draft, and with it what was inferred.
    """
    said = asked(task)
    found = infer(said, read_project(root))
    if isinstance(found, Refusal):
        raise UnclearError(str(found))
    if adoption(found.confidence, is_agreed=True, is_terminal=False) is Adoption.REFUSE:
        reasons = "; ".join((*found.rationale, *found.warnings))
        raise UnclearError(
            f"it is not certain what tells that this is done: {found.criterion} ({reasons}). Say it in the task, "
            "such as 'until `COMMAND` passes', or name rules with --loop-rules"
        )
    return Understood(said, found)


def clarity_of(state: RunState, allow: Sequence[str]) -> Clarity:
    """The points of the draft that a state begins with."""
    budgets = [f"{state.limits.usd:g} USD"] if state.limits.usd else []
    return clarity(
        Draft(
            task=state.task.prompt,
            rules=tuple(_draft_rule(rule) for rule in state.criteria.rules),
            max_iterations=state.max_iterations,
            budgets=tuple(budgets),
            allow=tuple(allow),
            artifact=state.artifact if state.target is Target.ARTIFACT else "",
        )
    )


def _draft_rule(rule: RunRule) -> DraftRule:
    kind = "tests" if is_test(rule) else "sentence" if isinstance(rule.check, str) else "rules"
    return DraftRule(rule.id, kind, is_blocking=rule.blocks, must_not=rule.must_not)


def clarity_lines(state: RunState, allow: Sequence[str] = ()) -> Iterator[str]:
    """How clear a draft is, what kind of work it is, and how it is undone; raises `UnclearError` where it is not."""
    found = clarity_of(state, allow)
    kind = workflow(state.task.prompt)
    undone = reversibility(state.task.prompt, allow)
    yield f"workflow    {kind.value} ({_WORKFLOWS[kind.value]}), undo {undone.kind.value}: {undone.because}"
    points = ", ".join(f"{one.dimension} {one.score}" for one in found.points)
    yield f"clarity     {found.total} of 10, {found.shape.value}: {points}"
    if found.shape is Shape.UNCLEAR:
        raise UnclearError("this is not clear enough to start:\n" + "\n".join(f"  {one}" for one in found.missing))
