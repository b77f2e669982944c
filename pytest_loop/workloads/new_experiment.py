"""The start of an experiment: its workload, the role of each case, its first state, and its sealed files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pytest_loop.agents import prompts
from pytest_loop.core.events.experiment_payloads import ExperimentStarted
from pytest_loop.core.judging.run_draft import build_run_criteria
from pytest_loop.core.model.rules import Phase, SessionPlan
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_setup import Breakers, IterationControl, Setup
from pytest_loop.core.model.run_state import Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import Policy
from pytest_loop.core.workload.phase_proofs import StartProof
from pytest_loop.errors import LoopError, StateError
from pytest_loop.run.fence import resolve_writable_paths
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.settings.command_line import build_session_arguments
from pytest_loop.settings.settings import Settings
from pytest_loop.store.clock import read_clock
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workloads import plan_file
from pytest_loop.workloads.cases import CaseRoles, Workload, assign_roles, load_workload
from pytest_loop.workloads.composer_prompt import COMPOSE
from pytest_loop.workloads.manifest import choose_setting, split_manifest_command
from pytest_loop.workspace.seal import build_seal_patterns
from pytest_loop.workspace.sealed_files import SealedFiles

_DEFAULT_HYPOTHESIS = "all cases pass with the files as they are"


@dataclass(frozen=True)
class NewExperiment:
    """The experiment that the settings of a command line describe."""

    settings: Settings

    @property
    def root(self) -> Path:
        return self.settings.root

    @cached_property
    def workload(self) -> Workload:
        """The workload; raises `ManifestError` with one line for each problem."""
        path = self._resolve_path("--loop-manifest", self.settings.workload.manifest)
        return load_workload(path, self.root)

    @cached_property
    def plan(self) -> plan_file.Plan:
        if not self.settings.workload.plan:
            return plan_file.Plan()
        return plan_file.read_plan(self._resolve_path("--loop-plan", self.settings.workload.plan), self.root)

    @cached_property
    def roles(self) -> CaseRoles:
        return assign_roles(
            [case.id for case in self.workload.cases],
            only=self.settings.workload.case,
            focus=self._choose("focus") or self.plan.focus,
            guards=self._choose("guard") or self.plan.guards,
            excluded=[exclusion.case for exclusion in self.plan.exclusions],
        )

    def _choose(self, name: str) -> Any:
        return choose_setting(name, self.settings.workload, self.workload.manifest, self.settings.flags)

    @property
    def manifest_path(self) -> str:
        """The manifest's path from the root: the first part of the node ids of cases."""
        return self.workload.source.path.relative_to(self.root).as_posix()

    @property
    def workload_id(self) -> str:
        return self.workload.manifest.workload_id

    def _resolve_path(self, option: str, name: str) -> Path:
        path = (self.settings.folder / name).resolve()
        root = self.root.resolve()
        if not path.is_relative_to(root):
            raise pytest.UsageError(f"{option}: expected a path inside {self.root}, found {name!r}")
        return self.root / path.relative_to(root)

    def build_arguments(self) -> tuple[str, ...]:
        """Return the arguments of every session: the user's, and the manifest or the cases to run."""
        path = str(self.workload.source.path)
        runs_all = len(self.roles.selected) == len(self.workload.cases)
        cases = (path,) if runs_all else tuple(f"{path}::{case}" for case in self.roles.selected)
        arguments = build_session_arguments(self.settings.arguments, self.settings.paths)
        return (*arguments, *self.settings.location_arguments, *cases)

    def begin(self, files: RunFiles, session: Session, agents: tuple[str, ...]) -> tuple[ExperimentState, SealedFiles]:
        """Collect the cases, seal the files of the project, and return the first state and the sealed files."""
        self._validate_prompt()
        result = self._collect_cases(session)
        project = SealedFiles(self.root, files.folder, self._build_patterns(), (), self._list_outputs())
        # The baseline adds the plugins: it is the first session in which workers run.
        seal = project.record_seal(resolve_writable_paths(self.settings)).model_copy(update={"plugins": None})
        state = self._make_state(files, result.plan or SessionPlan())
        return state.replace(agents=agents, seal=seal, artifact_hash=project.digest), project

    def _make_state(self, files: RunFiles, plan: SessionPlan) -> ExperimentState:
        """Make the state of the run; all breakers are off, because the policies of the experiment replace them."""
        settings, created = self.settings, read_clock()
        return ExperimentState(
            run_id=f"{files.alias}-{datetime.now(timezone.utc).strftime('%Y%m%d-%H%M%S')}",
            task_alias=files.alias,
            task=Task(prompt=settings.start.task or f"make all cases of {self.workload_id} pass"),
            max_iterations=self._max_iterations,
            max_completed_phase_seconds=settings.limits.max_seconds,
            criteria=self._make_criteria(plan),
            created_at=created,
            updated_at=created,
            setup=Setup(
                target=Target.WORKSPACE,
                artifact=os.path.relpath(files.artifact, self.root),
                judge=settings.agents.judge,
                arguments=self.build_arguments(),
                limits=settings.limits.build_limits(),
                breakers=Breakers(stuck=0, same_error=0, thrashing=0, stagnation=0),
                control=IterationControl.model_validate(settings.control.values),
            ),
            experiment=self._make_experiment(),
        )

    def _validate_prompt(self) -> None:
        """Raise an error if the manifest's prompt for the composer is invalid, before the experiment starts."""
        prompt_file = self.workload.manifest.agents.composer.prompt_file
        if prompt_file:
            values = dict.fromkeys(prompts.PLACEHOLDERS[COMPOSE], "x")
            prompts.render_template(COMPOSE, values, template=self.workload.folder / prompt_file)

    @property
    def _max_iterations(self) -> int:
        return (
            self.settings.limits.max_iterations
            if "--loop-max-iterations" in self.settings.flags
            else self.workload.manifest.max_iterations
        )

    def _collect_cases(self, session: Session) -> SessionResult:
        """Collect the items of a session; raise an error if a case is missing."""
        try:
            order = SessionOrder(phase=Phase.B, manifest=self.manifest_path, canary=secrets.token_hex(8))
            result = session.evaluate(order, "--collect-only", "-q")
        except SessionError as error:
            raise StateError(f"the cases cannot be collected: {error}") from None
        items = (result.plan or SessionPlan()).items
        missing = [case for case in self.roles.selected if f"{self.manifest_path}::{case}" not in items]
        if missing:
            reason = "; ".join(result.problems.values()) or "something in pytest's configuration leaves them out"
            raise LoopError(f"expected {len(self.roles.selected)} cases, and {missing[0]} is not collected: {reason}")
        return result

    def _make_criteria(self, plan: SessionPlan) -> RunCriteria:
        """Return the cases as rules, including held-out ones."""
        case_names = {f"{self.manifest_path}::{case}": case for case in self.roles.selected}
        criteria = build_run_criteria(plan, {})
        rules = tuple(
            rule.model_copy(
                update={
                    "held_out": case_names[rule.id] in self.workload.held_out_cases,
                    "description": case_names[rule.id],
                }
            )
            for rule in criteria.rules
            if rule.id in case_names
        )
        return RunCriteria(name=self.workload_id, phase=criteria.phase, rules=rules)

    def _make_experiment(self) -> Experiment:
        roles = self.roles
        policy = {name: self._choose(name) or None for name in ("mode", "on_plateau", "on_regression", "decide")}
        return Experiment(
            manifest=self.manifest_path,
            workload=self.workload_id,
            cases=roles.selected,
            artifacts=self.workload.editable_files,
            policy=Policy.model_validate(policy),
            focus=roles.focus,
            guards=roles.guards,
            excluded=roles.excluded,
            held_out_cases=self.workload.held_out_cases & frozenset(roles.selected),
            plan=str(self.plan),
            first_hypothesis=self.plan.first_hypothesis or _DEFAULT_HYPOTHESIS,
        )

    def _build_patterns(self) -> tuple[str, ...]:
        """Return the seal patterns: the files that decide the outcome of cases, without the editable ones."""
        unseal = (
            *(f"/{self._get_root_path(path)}" for path in self.workload.editable_files),
            *self.settings.workspace.unseal,
        )
        paths = [self.manifest_path, *map(self._get_root_path, self._list_judging_files())]
        return build_seal_patterns(paths, self.settings.workspace.seal, unseal)

    def _list_judging_files(self) -> Iterator[str]:
        """Yield the files of the workload that must not be edited: cases, expected outputs and programs."""
        manifest = self.workload.manifest
        for case in self.workload.cases:
            yield from filter(None, (case.id, case.expected))
        words = {word for command in manifest.commands for word in split_manifest_command(command)}
        names = (*sorted(words), manifest.reviewer)
        yield from (word for word in names if word and (self.workload.folder / word).is_file())

    def _get_root_path(self, name: str) -> str:
        return PurePosixPath(os.path.relpath(self.workload.folder / name, self.root)).as_posix()

    def _list_outputs(self) -> tuple[str, ...]:
        """Return the paths that sessions write: the folder of outputs if it contains nothing else, or each output."""
        pattern = self.workload.manifest.output_path
        folder = os.path.normpath(pattern.partition("{")[0].rpartition("/")[0] or ".")
        other_files = (
            *self.workload.editable_files,
            *self.workload.docs,
            *self._list_judging_files(),
            self.workload.source.path.name,
        )
        if (
            folder != "."
            and not folder.startswith("..")
            and not any(path.startswith(f"{folder}/") for path in other_files)
        ):
            return (f"{self._get_root_path(folder)}/",)
        return tuple(self._get_root_path(case.output) for case in self.workload.cases)

    def make_start(self, state: ExperimentState, approved: str) -> ExperimentStarted:
        """Return the first event's payload; `approved` says how the user agreed to the draft."""
        mode = self._choose("mode")
        proof = StartProof(
            mode=mode,
            session_dir=self.settings.start.dir or ".loop",
            cases_selected=len(self.roles.selected),
            failure_context=self.plan.problem,
            hypotheses_ranked=len(self.plan.hypotheses),
            experiments_designed=len(self.plan.hypotheses),
            plan_written=bool(self.settings.workload.plan),
            user_approved=approved,
        )
        manifest = self.workload.manifest.model_dump(by_alias=True, exclude_defaults=True)
        return ExperimentStarted.model_validate({**manifest, "state": state, "mode": mode, "proof": proof})
