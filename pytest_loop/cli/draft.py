"""The draft of a new run: its rules, collected once, and the state that it begins with."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pytest_loop.cli.document import check_format, choose_document
from pytest_loop.cli.document_draft import draft_document, find_named_type, find_task_type
from pytest_loop.cli.inferred_rules import infer_rules
from pytest_loop.cli.readiness import UnclearError, UserChoices
from pytest_loop.cli.session_arguments import build_judging_arguments
from pytest_loop.cli.task import TaskContext, may_only_edit, propose_criteria
from pytest_loop.core.judging.run_draft import add_module_rules, build_run_criteria
from pytest_loop.core.model.rules import TESTS_SOURCE, Phase, SessionPlan
from pytest_loop.core.model.run_setup import Breakers, IterationControl, Limits, Setup
from pytest_loop.core.model.run_state import Progress, RunState, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.wording import format_count
from pytest_loop.errors import NothingToJudgeError, StateError
from pytest_loop.inference.task_types import TaskType
from pytest_loop.rules.sources import name_source, name_template, read_template
from pytest_loop.rules.syntax import DATA_FORMATS_BY_SUFFIX
from pytest_loop.run.console import Console
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import Session, SessionError, SubprocessSession
from pytest_loop.settings.settings import Settings
from pytest_loop.store.clock import read_clock
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact


@dataclass(frozen=True)
class RunDraft:
    """A run before its confirmation; `artifact` is the path of the document, or of the diff of the project's files.

    `plan` has the rules that `session` collected, `plugins` are the plugins of that session.
    """

    settings: Settings
    context: TaskContext
    artifact: Path
    target: Target
    session: SubprocessSession
    plan: SessionPlan
    plugins: frozenset[str] = frozenset()

    @property
    def choices(self) -> UserChoices:
        """The decisions of the user beyond the words of the task."""
        settings, document = self.settings, self.context.document
        judging = settings.judging
        is_in_rules = document.is_path_named if document else any(self.plan.documents.values())
        template = document.criteria.template if document else judging.template
        return UserChoices(
            allow=settings.workspace.allow,
            is_artifact_named=bool(settings.workspace.artifact or is_in_rules),
            are_rules_named=bool(
                judging.rules
                or judging.template
                or settings.paths
                or self.context.answers.task_type
                or settings.start.tests_first
            ),
            limits=tuple(self._list_chosen_limits()),
            template_rules=frozenset(rule.id for rule in read_template(template).rules) - self.context.origins.keys(),
        )

    def render_notes(self, *, is_detailed: bool = True) -> Iterator[str]:
        """Render what the user should know beyond the rules: what was inferred, and what cannot be judged."""
        yield from self.context.render_notes(is_detailed=is_detailed)
        for key, obstacle in self.plan.obstacles.items():
            yield f"note: {key.rpartition('::')[2]} cannot be judged here: {obstacle}"
        sentences = sum(isinstance(check, str) for check in self.plan.checks.values())
        if sentences and may_only_edit(self.settings):
            count = format_count(sentences, "rule")
            yield f"note: the agent also judges {count}, and has to answer with JSON: --loop-judge names another one"

    def _list_chosen_limits(self) -> Iterator[str]:
        """Yield the limits that are not defaults."""
        limits, context = self.settings.limits, self.context
        is_given = "--loop-max-iterations" in self.settings.flags
        limits_given = (context.answers.max_iterations, context.task.iteration_limit, context.project.max_iterations)
        if is_given or any(limits_given):
            yield format_count(self._choose_max_iterations(), "iteration")
        if limits.budget and ("--loop-budget" in self.settings.flags or limits.budget != Limits().usd):
            yield f"{limits.budget:g} USD"
        if limits.max_tokens:
            yield f"{limits.max_tokens:,} tokens"
        if seconds := self._choose_max_seconds():
            yield f"{seconds:g} seconds"

    def find_origins(self, state: RunState) -> dict[str, str]:
        """Return where each rule came from, by its key."""
        origins = {
            f"{criteria.source}::{rule.id}": name_source(criteria.source)
            for criteria in self.plan.criteria
            for rule in criteria.rules
        }
        inferred = self.context.origins
        if document := self.context.document:
            template = document.criteria.template
            inferred = {rule.id: name_template(template) for rule in read_template(template).rules} | inferred
        return origins | {rule.key: inferred[rule.id] for rule in state.criteria.rules if rule.id in inferred}

    def build_state(self, alias: str) -> RunState:
        """Return the state that the run begins with; `alias` is its name."""
        settings, context = self.settings, self.context
        stated = {} if context.document else context.project.thresholds  # a document's rule file states its thresholds
        thresholds = {phase: repr(score) for phase, score in stated.items()}
        is_inside = self.artifact.is_relative_to(settings.root)
        now = read_clock()
        return RunState(
            run_id=f"{alias}-{datetime.now(timezone.utc).strftime('%Y%m%d-%H%M%S')}",
            task_alias=alias,
            task=Task(prompt=context.task.request, ideal_result=context.answers.ideal),
            max_iterations=self._choose_max_iterations(),
            max_completed_phase_seconds=self._choose_max_seconds(),
            criteria=build_run_criteria(self.plan, thresholds | settings.judging.threshold),
            created_at=now,
            updated_at=now,
            setup=Setup(
                target=self.target,
                artifact=self.artifact.relative_to(settings.root).as_posix() if is_inside else str(self.artifact),
                agents=settings.agents.agent,
                candidates=settings.agents.candidates,
                judge=settings.agents.judge,
                arguments=self.session.arguments,
                inferred_rules=context.rule_file,
                limits=settings.limits.build_limits(),
                breakers=Breakers.model_validate(settings.breakers.values),
                control=IterationControl.model_validate(settings.control.values),
            ),
            progress=Progress(
                artifact_hash=Artifact(self.artifact).compute_hash() if self.target is Target.ARTIFACT else ""
            ),
        )

    def _choose_max_iterations(self) -> int:
        """Return the limit that was confirmed, else of the command line, the task, the project, or the ini file."""
        if self.context.answers.max_iterations:
            return self.context.answers.max_iterations
        limit = self.context.task.iteration_limit or self.context.project.max_iterations
        is_given = "--loop-max-iterations" in self.settings.flags
        return self.settings.limits.max_iterations if is_given or not limit else limit

    def _choose_max_seconds(self) -> int | None:
        """Return the time limit of the command line, else of the task, else of the ini file."""
        limit = self.context.task.time_limit
        is_given = "--loop-max-seconds" in self.settings.flags
        return self.settings.limits.max_seconds if is_given or not limit else limit


def make_draft(
    settings: Settings, context: TaskContext, files: RunFiles, sessions: SessionFactory, console: Console
) -> RunDraft:
    """Collect the rules: those that the user named, else those of the project and those that can be inferred.

    Raises `NothingToJudgeError` without rules, and `UnclearError` for a task that cannot be measured.
    """
    if task_type := find_named_type(settings, context, console):
        return _draft_document_run(settings, context, task_type, files, sessions)
    session = sessions.make(build_judging_arguments(settings), time.time())
    plan, plugins = collect_rules(session, files.artifact)
    has_tests_only = all(criteria.source == TESTS_SOURCE for criteria in plan.criteria)
    are_rules_named = bool(settings.judging.rules or settings.judging.template or settings.paths)
    can_be_inferred = has_tests_only and not are_rules_named and not context.has_criteria
    has_document_tests = bool(plan.criteria and settings.workspace.artifact)
    tests_first = settings.start.tests_first
    may_be_document = can_be_inferred and not (has_document_tests or tests_first)
    if may_be_document and (task_type := find_task_type(settings, context)):
        return _draft_document_run(settings, context, task_type, files, sessions)
    if are_rules_named or settings.workspace.artifact:
        context = context.drop_project_rules()
        if has_tests_only and plan.criteria and not settings.workspace.artifact:
            propose_criteria(context, settings)  # raises for a task that cannot be measured
    elif can_be_inferred:
        try:
            context = infer_rules(context, settings, console)
        except UnclearError:
            if not tests_first:  # the tests that are written first measure the task
                raise
    if context.rule_file:
        session, plan, plugins = _collect_rule_file(settings, context, files, sessions)
    if not tests_first:
        _require_rules(plan)
    document = choose_document(settings, plan, context.task.text, files.folder)
    target = Target.ARTIFACT if document else Target.WORKSPACE
    return RunDraft(settings, context, document or files.artifact, target, session, plan, plugins)


def _draft_document_run(
    settings: Settings, context: TaskContext, task_type: TaskType, files: RunFiles, sessions: SessionFactory
) -> RunDraft:
    """Return the draft of a run of one document."""
    context, path = draft_document(settings, context, task_type, files.folder)
    session, plan, plugins = _collect_rule_file(settings, context, files, sessions)
    declared = next(filter(None, plan.documents.values()), "")
    if context.document and declared not in ("", context.document.artifact):  # the user has edited the rule file
        path = check_format(settings.root / declared, task_type.template)
    return RunDraft(settings, context, path, Target.ARTIFACT, session, _require_rules(plan), plugins)


def _collect_rule_file(
    settings: Settings, context: TaskContext, files: RunFiles, sessions: SessionFactory
) -> tuple[SubprocessSession, SessionPlan, frozenset[str]]:
    """Write the rule file that was inferred or drafted, and collect it."""
    files.save_rules(context.rule_file)
    test_paths = context.choose_test_paths(settings.test_paths or [str(settings.root)])
    session = sessions.make(build_judging_arguments(settings, str(files.rules), *test_paths), time.time())
    return session, *collect_rules(session, files.artifact)


def collect_rules(session: Session, artifact: Path) -> tuple[SessionPlan, frozenset[str]]:
    """Return the rules that a session collects, if any, and its plugins; raise `StateError` for a bad rule file.

    Use the path `artifact` as a placeholder: rules that read a document need one, and it is chosen later.
    """
    try:
        order = SessionOrder(artifact=str(artifact), phase=Phase.B, canary=secrets.token_hex(8))
        result = session.evaluate(order, "--collect-only", "-q")
    except SessionError as error:
        raise StateError(f"the rules cannot be collected: {error}") from None
    if problems := list_rule_file_problems(result):
        raise StateError("the rules cannot be collected:\n" + "\n".join(problems))
    plan = add_module_rules(result.plan or SessionPlan(), (path for path in result.problems if path.endswith(".py")))
    has_rules = any(criteria.rules for criteria in plan.criteria)
    return plan if has_rules else SessionPlan(), result.plugins


def list_rule_file_problems(result: SessionResult) -> list[str]:
    """Return why rule files could not be collected."""
    return [text for path, text in result.problems.items() if path.endswith(tuple(DATA_FORMATS_BY_SUFFIX))]


def _require_rules(plan: SessionPlan) -> SessionPlan:
    if not plan.criteria:
        raise NothingToJudgeError(
            "there is nothing to judge: name rules with --loop-rules, --loop-template or paths, or let the agent write "
            "failing tests first with --loop-tests-first"
        )
    rules = [f"{criteria.source}::{rule.id}" for criteria in plan.criteria for rule in criteria.rules]
    if all(key in plan.obstacles for key in rules):
        lines = "".join(f"\n  {key.rpartition('::')[2]}: {obstacle}" for key, obstacle in plan.obstacles.items())
        raise NothingToJudgeError(f"no rule can be judged here, so that nothing was started:{lines}")
    return plan
