"""A new run from what a person asked for: its task, its rules, and the state it begins with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_loop.core import machine
from pytest_loop.core.drafting import run_criteria
from pytest_loop.core.model import Phase, Plan
from pytest_loop.core.order import Order
from pytest_loop.core.run import Breakers, Limits, RunState, Target, Task
from pytest_loop.errors import LoopError, StateError
from pytest_loop.evaluate.session import Session, SessionError
from pytest_loop.options import child_arguments
from pytest_loop.rules.files import TEMPLATES, template_names
from pytest_loop.rules.syntax import FORMATS
from pytest_loop.run_options import RunOptions
from pytest_loop.store import now
from pytest_loop.workspace.artifact import Artifact

LONGEST_TASK = 200_000


class NothingToJudgeError(LoopError):
    """There is no rule at all."""


@dataclass(frozen=True)
class NewRun:
    """What the words on a command line come to."""

    config: pytest.Config
    values: argparse.Namespace
    options: RunOptions
    root: Path

    def task(self) -> str:
        """What to do: said outright, in a file, or on standard input."""
        task = _as_written(self.config.invocation_params.args) or self.options.task
        try:
            if task == "-":
                task = sys.stdin.read()
            elif task.startswith("@"):
                task = (self.config.invocation_params.dir / task[1:]).read_text(encoding="utf-8")
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

    def artifact(self) -> Path | None:
        """The document that the person named, if any; it must stay inside the project."""
        if not self.options.artifact:
            return None
        path = (self.config.invocation_params.dir / self.options.artifact).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise pytest.UsageError(
                f"--loop-artifact: expected a path inside {self.root}, found {self.options.artifact!r}"
            )
        return path

    def arguments(self) -> tuple[str, ...]:
        """The person's own arguments; rule files that were named take the place of paths."""
        given = self.config.invocation_params.args
        paths = self.values.file_or_dir
        judging = [*self.options.rules]
        if self.options.template:
            if self.options.template not in template_names():
                names = ", ".join(template_names())
                raise pytest.UsageError(f"--loop-template: expected one of {names}, found {self.options.template!r}")
            judging.append(str(TEMPLATES / f"{self.options.template}.rules.yaml"))
        for rule in self.options.rules:
            if not (self.config.invocation_params.dir / rule.partition("::")[0]).exists():
                raise pytest.UsageError(f"--loop-rules: expected a file or folder, found {rule!r}")
        words = child_arguments([str(word) for word in given], paths if judging else ())
        root = ("--rootdir", str(self.root))
        ini = ("-c", str(self.config.inipath)) if judging and self.config.inipath else ()
        return (*words, *root, *ini, *judging)

    def plan(self, session: Session, artifact: Path) -> Plan:
        """The rules, collected once to see what there is."""
        try:
            judgement = session.evaluate(Order(artifact=str(artifact), phase=Phase.B), "--collect-only", "-q")
        except SessionError as error:
            raise StateError(f"the rules cannot be collected: {error}") from None
        bad = [text for name, text in judgement.problems.items() if name.endswith(tuple(FORMATS))]
        if bad:
            raise StateError("the rules cannot be collected:\n" + "\n".join(bad))
        found = judgement.plan
        if found is None or not found.items:
            raise NothingToJudgeError(
                "there is nothing to judge: name rules with --loop-rules, --loop-template or paths"
            )
        return found

    def state(self, task: str, alias: str, artifact: Path, plan: Plan) -> RunState:
        """Where it begins."""
        options = self.options
        created = now()
        stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        state = RunState(
            run_id=f"{alias}-{stamp}",
            task_alias=alias,
            task=Task(prompt=task),
            max_iterations=options.max_iterations,
            max_completed_phase_seconds=options.max_seconds,
            criteria=run_criteria(plan, options.thresholds, plan.sentences),
            created_at=created,
            updated_at=created,
            target=Target.WORKSPACE if options.workspace else Target.ARTIFACT,
            artifact=_shown(artifact, self.root),
            agents=options.agents,
            judge=options.judge,
            arguments=self.arguments(),
            limits=Limits(usd=options.budget, tokens=options.max_tokens),
            breakers=Breakers.model_validate(options.breakers),
            artifact_hash=Artifact(artifact).hash(),
        )
        return machine.beginning(state)


def _as_written(words: Sequence[object]) -> str:
    """`@FILE` as the person wrote it: pytest puts the lines of the file in its place, each as a word."""
    pairs = pairwise(str(word) for word in words)
    return next((value for name, value in pairs if name == "--loop-task" and value.startswith("@")), "")


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
