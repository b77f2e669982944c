"""Read the task and the project's context, and infer criteria from both."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_loop.cli.readiness import UnclearError
from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.command_candidate import Confidence, Goal
from pytest_loop.inference.project_context import FILES, ProjectContext, extract_context
from pytest_loop.inference.project_files import read_files, read_project
from pytest_loop.inference.proposal import Proposal, ProposedRule, build_rules, explain_uncertainty, render_rule_file
from pytest_loop.inference.shape_file import PATH as SHAPE_FILE
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import ParsedTask, parse_task
from pytest_loop.inference.task_refusal import Refusal
from pytest_loop.settings.settings import Settings

MAX_TASK_LENGTH = 200_000


def read_task(settings: Settings) -> str:
    """Return the task from the command line, from a file (`@FILE`), or from standard input (`-`)."""
    task = _find_file_argument(settings.arguments) or settings.start.task
    try:
        if task == "-":
            task = sys.stdin.read()
        elif task.startswith("@"):
            task = (settings.folder / task[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(
            f"--loop-task: cannot read {task}: {getattr(error, 'strerror', None) or error}"
        ) from None
    task = task.replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not task:
        raise pytest.UsageError("--loop-task: expected what to do, found an empty text")
    if len(task) > MAX_TASK_LENGTH:
        raise pytest.UsageError(f"--loop-task: expected at most {MAX_TASK_LENGTH:,} characters, found {len(task):,}")
    return task


def _find_file_argument(arguments: Sequence[str]) -> str:
    """Return `@FILE` as it was typed: pytest replaces it by the lines of the file, each as an argument."""
    pairs = pairwise(arguments)
    return next((value for flag, value in pairs if flag == "--loop-task" and value.startswith("@")), "")


@dataclass(frozen=True)
class TaskContext:
    """A task, what the project says about it, and what was inferred if no rules were named.

    `unjudged` are rules of the project that are sentences, if no agent can judge them.
    """

    task: ParsedTask
    project: ProjectContext = field(default_factory=ProjectContext)
    unjudged: tuple[ProposedRule, ...] = ()
    proposal: Proposal | None = None

    @property
    def adds_tests(self) -> bool:
        """Whether the task needs new tests."""
        return self.proposal is not None and self.proposal.goal in (Goal.COVERAGE, Goal.IMPLEMENT_FEATURE)

    @property
    def says_when_done(self) -> bool:
        """Whether the task or the project says when it is done, so that passing at once is no surprise."""
        return bool(self.proposal is None or self.task.completion or self.task.commands)

    @property
    def _rules(self) -> tuple[ProposedRule, ...]:
        return (*(build_rules(self.proposal) if self.proposal else ()), *self.project.rules)

    @property
    def rule_file(self) -> str:
        """A rule file with inferred rules and those of the project; empty if there are none."""
        return render_rule_file(self._rules, "inferred" if self.proposal else "project")

    @property
    def has_criteria(self) -> bool:
        """Whether the project's SHAPE.md has a blocking rule, so that nothing has to be inferred."""
        return any(
            SHAPE_FILE in (source.path for source in rule.sources) and _is_blocking(rule) for rule in self.project.rules
        )

    @property
    def origins(self) -> dict[str, str]:
        """The sources of each rule by its id."""
        return {str(rule.entry["id"]): ", ".join(map(str, rule.sources)) or "the task" for rule in self._rules}

    def drop_project_rules(self) -> TaskContext:
        """Return the context for named rules: what the project says is then for prompts only."""
        return replace(self, project=replace(self.project, rules=()), unjudged=())

    def choose_test_paths(self, all_paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths to collect beside the rule file: all tests, or those that a rule names."""
        if self.proposal is None or any(criterion.is_project_tests for criterion in self.proposal.criteria):
            return tuple(all_paths)
        return tuple(dict.fromkeys(target for criterion in self.proposal.criteria for target in criterion.targets))

    def render_notes(self) -> Iterator[str]:
        """Render what was inferred, and what could not be."""
        if self.proposal:
            reasons = "; ".join(self.proposal.rationale)
            yield f"inferred    {self.proposal.criterion} ({self.proposal.confidence.value}): {reasons}"
            for criterion in self.proposal.criteria:
                if criterion.missing_tool:
                    yield f"cannot run  `{criterion.command}`: {criterion.missing_tool} is not installed here"
            yield from (f"note        {text}" for text in (*self.proposal.warnings, *self.proposal.unmeasured))
        if self.unjudged:
            places = ", ".join(dict.fromkeys(source.path for rule in self.unjudged for source in rule.sources))
            count = format_count(len(self.unjudged), "rule")
            yield f"note        {places}: {count} that only an agent could judge, in the prompt alone"


def _is_blocking(rule: ProposedRule) -> bool:
    return not rule.entry.get("must_not") and rule.entry.get("severity", "fail") == "fail"


def read_task_context(task: str, root: Path, *, can_judge: bool) -> TaskContext:
    """Return the task with what the project says; sentences are rules only if an agent `can_judge` them."""
    project = extract_context(read_files(root, FILES))
    unjudged = () if can_judge else tuple(rule for rule in project.rules if isinstance(rule.entry["check"], str))
    rules = tuple(rule for rule in project.rules if rule not in unjudged)
    return TaskContext(parse_task(task), replace(project, rules=rules), unjudged)


def infer_rules(context: TaskContext, root: Path) -> TaskContext:
    """Add rules that tell when the task is done; raises `UnclearError` if none can be inferred with confidence."""
    proposal = check_measurable(context, root)
    if proposal.confidence is Confidence.LOW:
        raise UnclearError(explain_uncertainty(proposal))
    return replace(context, proposal=proposal)


def check_measurable(context: TaskContext, root: Path) -> Proposal:
    """Return what can be inferred; raise `UnclearError` for a task that names nothing that could be measured."""
    proposal = infer_criteria(context.task, read_project(root))
    if isinstance(proposal, Refusal):
        raise UnclearError(str(proposal))
    return proposal
