"""Read the task and the project's context, and infer criteria from both."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_loop.agents.installed_clients import choose_default_agent
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.core.model.vocabulary import BUILTIN
from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.document_criteria import DocumentCriteria
from pytest_loop.inference.gates import Confirm
from pytest_loop.inference.project_context import FILES, ProjectContext, extract_context
from pytest_loop.inference.project_files import read_files, read_project
from pytest_loop.inference.proposal import Proposal, ProposedRule, build_rules, render_rule_file
from pytest_loop.inference.shape_file import SHAPE_FILE
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import ParsedTask, Route, add_task, parse_task
from pytest_loop.inference.task_refusal import Refusal, refuse_command
from pytest_loop.inference.task_types import TaskType
from pytest_loop.run.console import Console
from pytest_loop.settings.command_line import replace_task
from pytest_loop.settings.settings import Settings
from pytest_loop.store.project_runs import make_alias

MAX_TEXT_LENGTH = 200_000
# Kinds of agents that may be unable to do more than edit: they judge the project's sentences only as a named judge.
_EDIT_ONLY_KINDS = ("", BUILTIN, "command", "python")


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
    return clean_text("--loop-task", task, "what to do")


def clean_text(flag: str, text: str, expected: str) -> str:
    """Return a text of the user for prompts and files; raises `UsageError` if it is empty or too long."""
    text = text.replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not text:
        raise pytest.UsageError(f"{flag}: expected {expected}, found an empty text")
    if len(text) > MAX_TEXT_LENGTH:
        raise pytest.UsageError(f"{flag}: expected at most {MAX_TEXT_LENGTH:,} characters, found {len(text):,}")
    return text


def can_ask(settings: Settings, console: Console) -> bool:
    """Return whether the user is at a terminal and did not decline questions."""
    start = settings.start
    return console.can_ask and not start.yes and start.ask != Confirm.NEVER.value


def parse_request(settings: Settings, console: Console) -> ParsedTask:
    """Return the task with its conditions; if the words only point to something said before, ask for the task.

    Raises `UnclearError` for a text that is a command about runs, such as `pause the loop`.
    """
    task = parse_task(read_task(settings))
    if task.loop_command:
        raise UnclearError(str(refuse_command(task, task.loop_command)))
    if not task.needs_context or not console.can_ask or settings.start.yes:
        return task
    answer = console.read_answer("What is to be done until it succeeds? ")
    if not answer:
        raise KeyboardInterrupt
    return add_task(task, answer)


def choose_alias(settings: Settings, task: ParsedTask) -> str:
    """Return the name of the run: from the command line, from the task, or made from its words."""
    return settings.start.alias or task.alias or make_alias(task.request)


def _find_file_argument(arguments: Sequence[str]) -> str:
    """Return `@FILE` as it was typed: pytest replaces it by the lines of the file, each as an argument."""
    pairs = pairwise(arguments)
    return next((value for flag, value in pairs if flag == "--loop-task" and value.startswith("@")), "")


@dataclass(frozen=True)
class SetupAnswers:
    """Answers of the user about a run, at a terminal or by flags.

    `ideal` describes the ideal result. `commands` judge the files of a project. `mandatory` are checks of a document in
    words. `severities` maps ids of
    rules to severities that differ from the draft. `rule_file` is the drafted rule file as the user edited it.
    """

    task_type: TaskType | None = None
    ideal: str = ""
    commands: tuple[str, ...] = ()
    mandatory: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    severities: Mapping[str, str] = field(default_factory=dict)
    max_iterations: int | None = None
    rule_file: str = ""


@dataclass(frozen=True)
class DocumentDraft:
    """The draft of a run of one document; `rule_file` is the text of its rule file, `artifact` the path in there."""

    criteria: DocumentCriteria
    artifact: str
    rule_file: str
    is_path_named: bool = False


@dataclass(frozen=True)
class TaskContext:
    """A task, what the project says about it, and what was inferred if no rules were named.

    `unjudged` are the project's rules in words that no agent can judge. `statements` are the project's rules that hold
    for every document. With `can_judge`, an agent can judge sentences. `document` is the draft of a run of a document.
    """

    task: ParsedTask
    project: ProjectContext = field(default_factory=ProjectContext)
    unjudged: tuple[ProposedRule, ...] = ()
    proposal: Proposal | None = None
    can_judge: bool = False
    statements: tuple[ProposedRule, ...] = ()
    answers: SetupAnswers = field(default_factory=SetupAnswers)
    document: DocumentDraft | None = None

    @property
    def _rules(self) -> tuple[ProposedRule, ...]:
        if self.document:
            return self.document.criteria.rules
        return (*(build_rules(self.proposal) if self.proposal else ()), *self.project.rules)

    @property
    def rule_file(self) -> str:
        """The drafted rule file of a document, or one with inferred and the project's rules; empty without rules."""
        if self.document:
            return self.document.rule_file
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
        return {rule.id: rule.origin for rule in self._rules}

    def drop_project_rules(self) -> TaskContext:
        """Return the context without the rules of the project, which are then used in prompts only."""
        return replace(self, project=replace(self.project, rules=()), unjudged=())

    def choose_test_paths(self, all_paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths to collect beside the rule file: all tests, those that a rule names, none for a document."""
        if self.document:
            return ()
        if self.proposal is None or any(criterion.is_project_tests for criterion in self.proposal.criteria):
            return tuple(all_paths)
        return tuple(dict.fromkeys(target for criterion in self.proposal.criteria for target in criterion.targets))

    def render_notes(self, *, is_detailed: bool = True) -> Iterator[str]:
        """Yield notes on criteria that could not be inferred or judged; `is_detailed` adds why rules were inferred."""
        if self.proposal:
            if is_detailed:
                reasons = "; ".join(self.proposal.rationale)
                yield f"inferred: {self.proposal.criterion} ({self.proposal.confidence.value}): {reasons}"
            yield from (f"note: {text}" for text in (*self.proposal.warnings, *self.proposal.unmeasured))
        criteria = self.document.criteria if self.document else None
        if criteria and criteria.words:
            yield f"type: {criteria.template}: `{criteria.words}` in the task (another one: --loop-template NAME)"
        if unjudged := (*self.unjudged, *(criteria.unjudged if criteria else ())):
            places = ", ".join(dict.fromkeys(rule.origin.partition(":")[0] for rule in unjudged))
            count = format_count(len(unjudged), "rule")
            yield f"note: {places}: {count} that only an agent could judge, in the prompt alone: --loop-judge names one"

    def list_unjudged(self) -> tuple[str, ...]:
        """Return the ids of blocking rules of the project that no agent can judge."""
        return tuple(rule.id for rule in self.unjudged if rule.entry.get("severity", "fail") == "fail")


def _is_blocking(rule: ProposedRule) -> bool:
    return not rule.entry.get("must_not") and rule.entry.get("severity", "fail") == "fail"


def read_task_context(task: ParsedTask, root: Path, *, can_judge: bool, may_only_edit: bool = False) -> TaskContext:
    """Return the task with what the project says; sentences are rules only if an agent `can_judge` them.

    Agents that `may_only_edit` judge the rules of a document, but not sentences that the project states for all work.
    """
    project = extract_context(read_files(root, FILES))
    is_judged = can_judge and not may_only_edit
    unjudged = () if is_judged else tuple(rule for rule in project.rules if isinstance(rule.entry["check"], str))
    rules = tuple(rule for rule in project.rules if rule not in unjudged)
    return TaskContext(
        task, replace(project, rules=rules), unjudged, can_judge=can_judge, statements=project.overriding_rules
    )


def propose_criteria(context: TaskContext, settings: Settings) -> Proposal:
    """Return the criteria that can be inferred; raise `UnclearError` for a task that names nothing measurable."""

    def build_command(task: str) -> str:
        is_detached = context.task.route is Route.BACKGROUND and not settings.start.detach
        arguments = replace_task(settings.arguments, task)
        return shlex.join(["pytest", *arguments, *(["--loop-detach"] if is_detached else [])])

    proposal = infer_criteria(context.task, read_project(settings.root))
    if isinstance(proposal, Refusal):
        raise UnclearError("\n  ".join([proposal.explain(build_command), *context.render_notes()]))
    return proposal


def can_judge(settings: Settings) -> bool:
    """Return whether an agent can judge rules that are sentences."""
    return bool(settings.agents.judge) or any(kind not in ("", BUILTIN) for kind in _list_agent_kinds(settings))


def may_only_edit(settings: Settings) -> bool:
    """Return whether no judge is named, and each agent may be unable to do more than edit."""
    return not settings.agents.judge and all(kind in _EDIT_ONLY_KINDS for kind in _list_agent_kinds(settings))


def _list_agent_kinds(settings: Settings) -> list[str]:
    specs = settings.agents.agent or (choose_default_agent(are_files_edited=True),)
    return [spec.partition(":")[0] for spec in specs]
