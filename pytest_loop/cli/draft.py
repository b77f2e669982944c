"""The draft of a new run: its rules, collected once, and the state that it begins with."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pytest_loop.cli.session_arguments import build_judging_arguments, resolve_artifact
from pytest_loop.cli.task import TaskContext, check_measurable, infer_rules
from pytest_loop.core.judging.run_draft import add_module_rules, build_run_criteria
from pytest_loop.core.model.rules import TESTS_SOURCE, Criteria, Phase, SessionPlan
from pytest_loop.core.model.run_state import Breakers, Limits, Progress, RunState, Setup, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import LoopError, StateError
from pytest_loop.rules.syntax import FORMATS
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session.runner import Session, SessionError, SubprocessSession
from pytest_loop.settings.settings import Settings
from pytest_loop.store.clock import read_clock
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact


class NothingToJudgeError(LoopError):
    """There is no rule at all."""


@dataclass(frozen=True)
class Draft:
    """A run before its confirmation; `rule_file` has the rules that were inferred or that the project states."""

    settings: Settings
    context: TaskContext
    artifact: Path
    session: SubprocessSession
    plan: SessionPlan
    rule_file: Path | None = None

    @property
    def target(self) -> Target:
        """The files of the project if only tests judge; else a document, unless the user says otherwise."""
        settings = self.settings
        if settings.workspace.workspace or self.context.proposal:
            return Target.WORKSPACE
        is_named = bool(settings.workspace.artifact or settings.judging.rules or settings.judging.template)
        has_rule_files = any(self._is_from_user(criteria) for criteria in self.plan.criteria)
        return Target.ARTIFACT if is_named or has_rule_files else Target.WORKSPACE

    def _is_from_user(self, criteria: Criteria) -> bool:
        """Return whether these rules are in a rule file of the user."""
        is_inferred = self.rule_file is not None and criteria.source.endswith(self.rule_file.name)
        return criteria.source != TESTS_SOURCE and not is_inferred

    def find_origins(self, state: RunState) -> dict[str, str]:
        """Return where each rule came from, by its key."""
        origins = {
            f"{criteria.source}::{rule.id}": criteria.source
            for criteria in self.plan.criteria
            for rule in criteria.rules
        }
        inferred = self.context.origins
        return origins | {rule.key: inferred[rule.id] for rule in state.criteria.rules if rule.id in inferred}

    def build_state(self, alias: str) -> RunState:
        """Return the state that the run begins with."""
        settings, context, target = self.settings, self.context, self.target
        thresholds = {phase: repr(score) for phase, score in context.project.thresholds.items()}
        is_inside = self.artifact.is_relative_to(settings.root)
        now = read_clock()
        return RunState(
            run_id=f"{alias}-{datetime.now(timezone.utc).strftime('%Y%m%d-%H%M%S')}",
            task_alias=alias,
            task=Task(prompt=context.task.text),
            max_iterations=self._choose_max_iterations(),
            max_completed_phase_seconds=settings.limits.max_seconds,
            criteria=build_run_criteria(self.plan, thresholds | settings.judging.threshold, self.plan.sentences),
            created_at=now,
            updated_at=now,
            setup=Setup(
                target=target,
                artifact=self.artifact.relative_to(settings.root).as_posix() if is_inside else str(self.artifact),
                agents=settings.agents.agent,
                candidates=settings.agents.candidates,
                judge=settings.agents.judge,
                arguments=self.session.arguments,
                inferred_rules=context.rule_file,
                limits=Limits(usd=settings.limits.budget, tokens=settings.limits.max_tokens),
                breakers=Breakers.model_validate(settings.breakers.values),
            ),
            progress=Progress(
                artifact_hash=Artifact(self.artifact).compute_hash() if target is Target.ARTIFACT else ""
            ),
        )

    def _choose_max_iterations(self) -> int:
        """Return the limit of the command line, else of the task, else of the project, else of the ini file."""
        limit = self.context.task.iteration_limit or self.context.project.max_iterations
        is_given = "--loop-max-iterations" in self.settings.flags
        return self.settings.limits.max_iterations if is_given or not limit else limit


def make_draft(settings: Settings, context: TaskContext, files: RunFiles, sessions: SessionFactory) -> Draft:
    """Collect the rules: those that the user named, else those of the project and those that can be inferred.

    Raises `NothingToJudgeError` without rules, and `UnclearError` for a task that cannot be measured.
    """
    artifact = resolve_artifact(settings) or files.artifact
    session = sessions.make(build_judging_arguments(settings), time.time())
    plan = collect_rules(session, artifact)
    has_tests_only = all(criteria.source == TESTS_SOURCE for criteria in plan.criteria)
    judging = settings.judging
    if judging.rules or judging.template or settings.workspace.artifact or settings.paths:
        context = context.drop_project_rules()
        if has_tests_only and plan.criteria and not settings.workspace.artifact:
            check_measurable(context, settings.root)
    elif has_tests_only and not context.has_criteria:
        context = infer_rules(context, settings.root)
    if not context.rule_file:
        return Draft(settings, context, artifact, session, _require_rules(plan))
    files.save_rules(context.rule_file)
    test_paths = context.choose_test_paths(settings.test_paths or [str(settings.root)])
    session = sessions.make(build_judging_arguments(settings, str(files.rules), *test_paths), time.time())
    plan = collect_rules(session, artifact)
    return Draft(settings, context, artifact, session, _require_rules(plan), files.rules)


def collect_rules(session: Session, artifact: Path) -> SessionPlan:
    """Return the rules that a session collects, if any; raise `StateError` if a rule file cannot be read."""
    try:
        order = SessionOrder(artifact=str(artifact), phase=Phase.B)
        result = session.evaluate(order, "--collect-only", "-q")
    except SessionError as error:
        raise StateError(f"the rules cannot be collected: {error}") from None
    problems = [text for path, text in result.problems.items() if path.endswith(tuple(FORMATS))]
    if problems:
        raise StateError("the rules cannot be collected:\n" + "\n".join(problems))
    plan = add_module_rules(result.plan or SessionPlan(), (path for path in result.problems if path.endswith(".py")))
    return plan if any(criteria.rules for criteria in plan.criteria) else SessionPlan()


def _require_rules(plan: SessionPlan) -> SessionPlan:
    if not plan.criteria:
        raise NothingToJudgeError("there is nothing to judge: name rules with --loop-rules, --loop-template or paths")
    return plan
