"""What a task in plain words comes to in a project: what tells that it is done, or why nothing does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_loop.cli.readiness import UnclearError
from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.command_candidate import Confidence, Goal
from pytest_loop.inference.project_context import FILES, Context, extract_context
from pytest_loop.inference.project_files import read_files, read_project
from pytest_loop.inference.proposal import Proposal, ProposedRule, build_rules, explain_uncertainty, render_rule_file
from pytest_loop.inference.shape_file import PATH as SHAPE
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import ParsedTask, parse_task
from pytest_loop.inference.task_refusal import Refusal


@dataclass(frozen=True)
class Understood:
    """The words of a task, what the project says beside its rules, and what was inferred where nobody named a judge.

    `left` are rules of the project that nobody here can judge: sentences, without an agent that could read.
    """

    asked: ParsedTask
    context: Context = field(default_factory=Context)
    left: tuple[ProposedRule, ...] = ()
    proposal: Proposal | None = None

    @property
    def adds_tests(self) -> bool:
        """Whether the task cannot be done without new tests."""
        return self.proposal is not None and self.proposal.goal in (Goal.COVERAGE, Goal.IMPLEMENT_FEATURE)

    @property
    def says_when(self) -> bool:
        """Whether the task or the project says when it is done, so that passing at once is no surprise."""
        return bool(self.proposal is None or self.asked.completion or self.asked.commands)

    @property
    def _made(self) -> tuple[ProposedRule, ...]:
        return (*(build_rules(self.proposal) if self.proposal else ()), *self.context.rules)

    @property
    def rules(self) -> str:
        """A rule file with what was inferred and what the project says; empty where there is nothing of the kind."""
        return render_rule_file(self._made, "inferred" if self.proposal else "project")

    @property
    def has_criteria(self) -> bool:
        """Whether the project says itself when it is done, so that nothing has to be inferred."""
        return any(SHAPE in (source.path for source in rule.sources) and _blocks(rule) for rule in self.context.rules)

    def without_rules(self) -> Understood:
        """Where somebody has named what judges, the project's own words are for prompts alone."""
        return replace(self, context=replace(self.context, rules=()), left=())

    def paths(self, everything: Sequence[str]) -> tuple[str, ...]:
        """What has to be collected beside these rules: all tests, or those that a rule names."""
        if self.proposal is None or any(one.is_project_tests for one in self.proposal.criteria):
            return tuple(everything)
        return tuple(dict.fromkeys(target for one in self.proposal.criteria for target in one.targets))

    @property
    def origins(self) -> dict[str, str]:
        """Where each rule came from, by its id."""
        return {str(one.entry["id"]): ", ".join(map(str, one.sources)) or "the task" for one in self._made}

    def notes(self) -> Iterator[str]:
        """What a person should know of all this before the first iteration."""
        if self.proposal:
            because = "; ".join(self.proposal.rationale)
            yield f"inferred    {self.proposal.criterion} ({self.proposal.confidence.value}): {because}"
            for one in self.proposal.criteria:
                if one.missing_tool:
                    yield f"cannot run  `{one.command}`: {one.missing_tool} is not installed here"
            yield from (f"note        {text}" for text in (*self.proposal.warnings, *self.proposal.unmeasured))
        if self.left:
            places = ", ".join(dict.fromkeys(source.path for rule in self.left for source in rule.sources))
            count = format_count(len(self.left), "rule")
            yield f"note        {places}: {count} that only an agent could judge, in the prompt alone"


def _blocks(rule: ProposedRule) -> bool:
    return not rule.entry.get("must_not") and rule.entry.get("severity", "fail") == "fail"


def known_context(root: Path) -> Context:
    """What a project keeps for its agents."""
    return extract_context(read_files(root, FILES))


def heard(task: str, root: Path, *, can_judge: bool) -> Understood:
    """The words of a task, and what the project says; sentences are rules where somebody can judge them."""
    said = known_context(root)
    left = () if can_judge else tuple(rule for rule in said.rules if isinstance(rule.entry["check"], str))
    kept = tuple(rule for rule in said.rules if rule not in left)
    return Understood(parse_task(task), replace(said, rules=kept), left)


def inferred(known: Understood, root: Path) -> Understood:
    """Infer what tells that a task is done; raises `UnclearError` where nothing does, or nobody could be sure of it.

    Whoever starts a run confirms its draft, and with it what was inferred.
    """
    found = _inferred(known, root)
    if found.confidence is Confidence.LOW:
        raise UnclearError(explain_uncertainty(found))
    return replace(known, proposal=found)


def check_measurable(known: Understood, root: Path) -> None:
    """Raises `UnclearError` for a task that names nothing: tests that happen to be there do not say what it wants."""
    _inferred(known, root)


def _inferred(known: Understood, root: Path) -> Proposal:
    found = infer_criteria(known.asked, read_project(root))
    if isinstance(found, Refusal):
        raise UnclearError(str(found))
    return found


def tests_of(root: Path) -> list[str]:
    """The files of tests of a project, in any language: what a command judges by."""
    return read_project(root).find_tests()
