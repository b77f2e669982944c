"""A new run from what a person asked for: its task, its rules, and the state it begins with."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_loop.cli.task import Understood
from pytest_loop.core.judging.draft import (
    TESTS_SOURCE,
    add_module_rules,
    apply_baseline,
    build_run_criteria,
    is_module_rule,
)
from pytest_loop.core.model.evaluation import Sealed
from pytest_loop.core.model.rules import Criteria, Outcome, Phase, Plan
from pytest_loop.core.model.run_state import Breakers, Limits, Progress, RunState, Setup, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import LoopError, StateError
from pytest_loop.rules.sources import TEMPLATES, list_templates
from pytest_loop.rules.syntax import FORMATS
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.settings.command_line import build_session_arguments
from pytest_loop.settings.settings import Settings
from pytest_loop.store.clock import read_clock
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.seal import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles

LONGEST_TASK = 200_000


class NothingToJudgeError(LoopError):
    """There is no rule at all."""


def task_of(config: pytest.Config, said: str) -> str:
    """What to do: said outright, in a file, or on standard input."""
    task = _as_written(config.invocation_params.args) or said
    try:
        if task == "-":
            task = sys.stdin.read()
        elif task.startswith("@"):
            task = (config.invocation_params.dir / task[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(
            f"--loop-task: cannot read {task}: {getattr(error, 'strerror', None) or error}"
        ) from None
    task = task.replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not task:
        raise pytest.UsageError("--loop-task: expected what to do, found an empty text")
    if len(task) > LONGEST_TASK:
        raise pytest.UsageError(f"--loop-task: expected at most {LONGEST_TASK:,} characters, found {len(task):,}")
    return task


@dataclass(frozen=True)
class NewRun:
    """What the words on a command line come to."""

    config: pytest.Config
    values: argparse.Namespace
    settings: Settings
    root: Path
    understood: Understood
    kept: Path | None = None

    def artifact(self) -> Path | None:
        """The document that the person named, if any; it must stay inside the project."""
        if not self.settings.workspace.artifact:
            return None
        path = (self.config.invocation_params.dir / self.settings.workspace.artifact).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise pytest.UsageError(
                f"--loop-artifact: expected a path inside {self.root}, found {self.settings.workspace.artifact!r}"
            )
        return path

    def arguments(self) -> tuple[str, ...]:
        """The person's own arguments; rule files that were named take the place of paths.

        Where pytest finds its configuration is said once and for all: a file that turns up later is none.
        """
        given = self.config.invocation_params.args
        paths = self.values.file_or_dir
        judging = [*self.settings.judging.rules, *self._inferred()]
        if self.settings.judging.template:
            if self.settings.judging.template not in list_templates():
                names = ", ".join(list_templates())
                raise pytest.UsageError(
                    f"--loop-template: expected one of {names}, found {self.settings.judging.template!r}"
                )
            judging.append(str(TEMPLATES / f"{self.settings.judging.template}.rules.yaml"))
        for rule in self.settings.judging.rules:
            if not (self.config.invocation_params.dir / rule.partition("::")[0]).exists():
                raise pytest.UsageError(f"--loop-rules: expected a file or folder, found {rule!r}")
        words = build_session_arguments([str(word) for word in given], paths if judging else ())
        place = ("--rootdir", str(self.root), "-c", str(self.config.inipath or os.devnull))
        return (*words, *place, "--continue-on-collection-errors", *judging)

    def _inferred(self) -> list[str]:
        """What was inferred or is said by the project, and the project's own tests where these judge too."""
        if self.kept is None:
            return []
        paths = self.understood.paths(self.config.getini("testpaths") or [str(self.root)])
        return [str(self.kept), *paths]

    @property
    def is_judge_named(self) -> bool:
        """Whether the person said what judges."""
        return bool(
            self.settings.judging.rules
            or self.settings.judging.template
            or self.settings.workspace.artifact
            or self.values.file_or_dir
        )

    def plan(self, session: Session, artifact: Path) -> Plan:
        """The rules, collected once to see what there is."""
        try:
            judgement = session.evaluate(SessionOrder(artifact=str(artifact), phase=Phase.B), "--collect-only", "-q")
        except SessionError as error:
            raise StateError(f"the rules cannot be collected: {error}") from None
        bad = [text for name, text in judgement.problems.items() if name.endswith(tuple(FORMATS))]
        if bad:
            raise StateError("the rules cannot be collected:\n" + "\n".join(bad))
        found = add_module_rules(judgement.plan or Plan(), (one for one in judgement.problems if one.endswith(".py")))
        if not any(one.rules for one in found.criteria):
            raise NothingToJudgeError(
                "there is nothing to judge: name rules with --loop-rules, --loop-template or paths"
            )
        return found

    def target(self, plan: Plan) -> Target:
        """Tests judge the files of the project; rules judge a document, unless the person says otherwise."""
        settings = self.settings
        if settings.workspace.workspace or self.understood.proposal:
            return Target.WORKSPACE
        is_named = bool(settings.workspace.artifact or settings.judging.rules or settings.judging.template)
        return Target.ARTIFACT if is_named or any(map(self.is_rule_file, plan.criteria)) else Target.WORKSPACE

    def is_rule_file(self, criteria: Criteria) -> bool:
        """Whether these rules stand in a file that somebody wrote for the purpose."""
        return criteria.source != TESTS_SOURCE and not (self.kept and criteria.source.endswith(self.kept.name))

    def state(self, alias: str, artifact: Path, plan: Plan) -> RunState:
        """Where it begins."""
        settings = self.settings
        created = read_clock()
        stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        target = self.target(plan)
        return RunState(
            run_id=f"{alias}-{stamp}",
            task_alias=alias,
            task=Task(prompt=self.understood.asked.text),
            max_iterations=self._max_iterations(),
            max_completed_phase_seconds=settings.limits.max_seconds,
            criteria=build_run_criteria(plan, self._thresholds() | settings.judging.threshold, plan.sentences),
            created_at=created,
            updated_at=created,
            setup=Setup(
                target=target,
                artifact=_shown(artifact, self.root),
                agents=settings.agents.agent,
                candidates=settings.agents.candidates,
                judge=settings.agents.judge,
                arguments=self.arguments(),
                inferred_rules=self.understood.rules,
                limits=Limits(usd=settings.limits.budget, tokens=settings.limits.max_tokens),
                breakers=Breakers.model_validate(settings.breakers.values),
            ),
            progress=Progress(artifact_hash=Artifact(artifact).compute_hash() if target is Target.ARTIFACT else ""),
        )

    def _max_iterations(self) -> int:
        """What the command line says, else the words of the task, else the project, else the ini file."""
        said = self.understood.asked.iteration_limit or self.understood.context.max_iterations
        return (
            self.settings.limits.max_iterations if "--loop-max-iterations" in self.settings.flags or not said else said
        )

    def _thresholds(self) -> dict[str, str]:
        return {phase: repr(value) for phase, value in self.understood.context.thresholds.items()}

    def sealed(self, state: RunState, project: SealedFiles, session: Session) -> RunState:
        """The state with everything that must stay as it is: taken before the first edit, judged twice."""
        proof = project.record_start()
        looks = [self._look(state, session) for _ in range(2)]
        outcomes = [{key: max(found, key=lambda one: one.rank) for key, found in one.items()} for one, _ in looks]
        criteria, unstable, unjudged = apply_baseline(state.criteria, *outcomes)
        seal = Sealed(
            patterns=project.sealed.patterns,
            allow=project.allow.patterns,
            files=proof,
            site=hash_site_files(),
            plugins=tuple(sorted(frozenset[str]().union(*(plugins for _, plugins in looks)))),
            unstable=unstable,
            unjudged=unjudged,
        )
        return state.replace(criteria=criteria, seal=seal, artifact_hash=project.digest)

    def _look(self, state: RunState, session: Session) -> tuple[dict[str, list[Outcome]], frozenset[str]]:
        try:
            judgement = session.evaluate(SessionOrder(phase=Phase.B, canary=secrets.token_hex(8)))
        except SessionError as error:
            raise StateError(f"the tests cannot be run: {error}") from None
        if judgement.canaries and not all(judgement.canaries):
            raise StateError(
                "a test that must fail does not fail here: something patches pytest, and nothing can be judged"
            )
        found = judgement.by_rule()
        found |= {rule.key: judgement.of_module(rule.id) for rule in state.criteria.rules if is_module_rule(rule)}
        return {key: [one.outcome for one in pieces] for key, pieces in found.items()}, judgement.plugins


def _as_written(words: Sequence[object]) -> str:
    """`@FILE` as the person wrote it: pytest puts the lines of the file in its place, each as a word."""
    pairs = pairwise(str(word) for word in words)
    return next((value for name, value in pairs if name == "--loop-task" and value.startswith("@")), "")


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
