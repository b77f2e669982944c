"""Start or resume a run, drive it, and write its results."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_loop.agents.installed_clients import choose_default_agent
from pytest_loop.cli.calibration import Calibrator
from pytest_loop.cli.confirmation import Confirmation
from pytest_loop.cli.delegation import Delegation
from pytest_loop.cli.document_copy import DocumentCopy
from pytest_loop.cli.leftovers import refuse_leftovers
from pytest_loop.cli.origin import describe_origin
from pytest_loop.cli.output import build_result, check_report_path, write_debrief, write_json, write_report
from pytest_loop.cli.resume import ask_for_answer, resume_run
from pytest_loop.cli.run_preparation import RunPreparation
from pytest_loop.cli.runs import get_exit_code
from pytest_loop.cli.task import choose_alias, parse_request
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import LoopError, NothingToJudgeError
from pytest_loop.inference.task_phrases import Route
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.run import worktree
from pytest_loop.run.console import Console
from pytest_loop.run.context import RunContext
from pytest_loop.run.notification import notify_end
from pytest_loop.run.runner import Runner
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.run.steps import RunSteps, Steps
from pytest_loop.settings.settings import Settings
from pytest_loop.show import experiment_text
from pytest_loop.store.project_runs import Store, make_alias
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workloads.experiment_steps import ExperimentSteps
from pytest_loop.workloads.new_experiment import NewExperiment
from pytest_loop.workloads.pipeline import Calibration
from pytest_loop.workspace.sealed_files import SealedFiles


def start(settings: Settings, hook: Any, store: Store, console: Console) -> int:
    """Start or resume a run, and return its exit code."""
    try:
        return StartCommand(settings, hook, store, console).execute()
    except NothingToJudgeError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)


@dataclass
class StartCommand:
    """Start or resume a run, drive it to its end, and write its results.

    - `project`: the sealed files, if this process sealed them.
    - `can_resume`: whether there is a run that a later process can resume.
    - `is_detached`: whether the run continues in the background after its confirmation.
    - `calibration`: the result of an experiment's calibration.
    """

    settings: Settings
    hook: Any
    store: Store
    console: Console
    project: SealedFiles | None = None
    can_resume: bool = False
    is_detached: bool = False
    calibration: Calibration | None = None
    sessions: SessionFactory = field(init=False)
    runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        self.sessions = SessionFactory(self.settings, self.console.print_line, live=self.console.live)
        self.runner = Runner(self.settings, self.hook, self.console, self.sessions, self._choose_steps)

    def _choose_steps(self, state: RunState, context: RunContext) -> Steps:
        """Return the steps of a run or of an experiment."""
        return ExperimentSteps(context.ask_user, self.calibration) if isinstance(state, ExperimentState) else RunSteps()

    def execute(self) -> int:
        """Start or resume the run, drive it to its end, and return the exit code."""
        check_report_path(self.settings.output)
        self.can_resume = self.settings.commands.resume is not None
        self.is_detached = self.settings.start.detach
        try:
            with interrupt_on_signals():
                return self._start_or_resume()
        except KeyboardInterrupt:
            hint = "the run can go on with pytest-loop resume" if self.can_resume else "nothing was started"
            self.console.print_line(f"interrupted: {hint}")
            return int(pytest.ExitCode.INTERRUPTED)
        finally:
            self.sessions.close()

    def _start_or_resume(self) -> int:
        delegation = Delegation(self.store, self.settings, self.console)
        if (exit_code := delegation.delegate()) is not None:
            return exit_code
        if self.can_resume:
            state, files = resume_run(self.store, self.settings, self.console)
        elif self.settings.workload.manifest:
            state, files = self._start_experiment()
        else:
            state, files = self._start_run()
        if self.is_detached and not state.is_over:
            return delegation.detach(files)
        state = self._drive(state, files, self.project)
        while settings := ask_for_answer(state, self.settings, self.console):
            state = self._drive(*resume_run(self.store, settings, self.console))
        return get_exit_code(state)

    def _drive(self, state: RunState, files: RunFiles, project: SealedFiles | None = None) -> RunState:
        """Drive the run to its end, write the outputs, and notify the user that it ended."""
        if not state.is_over:
            state = self.runner.run(state, files, self.store, project)
        worktree.hand_over(self.settings.root, files, state, self.console.print_line)
        self._write_outputs(state, files)
        notify_end(state, self.settings, self.console)
        return state

    def _write_outputs(self, state: RunState, files: RunFiles) -> None:
        output, print_line = self.settings.output, self.console.print_line
        DocumentCopy(self.settings, self.console, state, files).offer()
        if self.settings.workload.debrief:
            write_debrief(files, self.settings.workload.debrief, print_line)
        if output.json or output.report:
            history = files.read_history()
            if output.json:
                write_json(build_result(files, state, history), output.json, print_line)
            if output.report:
                write_report(output, files, state, history.events, print_line)

    def _start_run(self) -> tuple[RunState, RunFiles]:
        """Start a new run: read the task, draft, seal and take the baseline, confirm, begin."""
        task = parse_request(self.settings, self.console)
        self.is_detached |= task.route is Route.BACKGROUND
        self.runner.check_settings()
        refuse_leftovers(self.store, self.settings.root, self.console.print_line)
        files = self.store.get_run(self.store.make_unique_alias(choose_alias(self.settings, task)))
        preparation = RunPreparation(
            self.settings, self.store, self.console, self.sessions, self.runner, files, self.is_detached
        )
        state = preparation.prepare(task)
        self.project = preparation.project
        state = state.replace(origin=describe_origin(self.settings.root, self.settings.arguments))
        return self._begin(state, files, RunStarted(state=state))

    def _start_experiment(self) -> tuple[RunState, RunFiles]:
        """Start a new experiment: load its manifest, collect its cases, confirm, calibrate, begin."""
        calibrator = Calibrator(self.settings, self.console)
        experiment = calibrator.load()
        self.runner.check_settings()
        alias = self.settings.start.alias or make_alias(experiment.workload_id)
        files = self.store.get_run(self.store.make_unique_alias(alias))
        try:
            state = self._open_experiment(experiment, files)
            is_attended = self.console.can_ask and not self.settings.start.yes
            self.console.print_lines(experiment_text.render_experiment_draft(state, is_attended=is_attended))
            confirmation = Confirmation(self.settings, self.console, self.store)
            confirmation.print_conditions(state, self.project, is_detached=self.is_detached)
            state = confirmation.confirm(state, "start?")
            calibrated = calibrator.calibrate(experiment)
            if calibrated is not experiment:
                self._discard(files)
                experiment = calibrated
                state = self._open_experiment(experiment, files).replace(draft=state.setup.draft)
            self.calibration = calibrator.calibration
            self.sessions.cache_bytecode(is_new=True)
        except BaseException:
            self._discard(files)
            raise
        state = state.replace(origin=describe_origin(self.settings.root, self.settings.arguments))
        approved = "--loop-yes" if self.settings.start.yes else "asked"
        return self._begin(state, files, experiment.make_start(state, approved))

    def _open_experiment(self, experiment: NewExperiment, files: RunFiles) -> ExperimentState:
        """Collect the cases of an experiment, seal its files, and return its first state."""
        session = self.sessions.make(experiment.build_arguments(), time.time())
        agents = self.settings.agents.agent or tuple(filter(None, (choose_default_agent(are_files_edited=False),)))
        state, self.project = experiment.begin(files, session, agents)
        return EXPERIMENT_MACHINE.begin(state)

    def _begin(self, state: RunState, files: RunFiles, payload: RunStarted) -> tuple[RunState, RunFiles]:
        """Acquire the run, and write its first event."""
        try:
            self.store.acquire_run(files, is_new=True, force=self.settings.start.force)
            worktree.refuse_overlap(self.store, files, state)
        except LoopError:
            if not files.exists:  # else another process has just begun a run of this name
                self._discard(files)
            raise
        if self.project:
            self.project.accept_current()  # the user may have edited files while the question waited
        event = Event.create(state, payload, state.created_at)
        self.store.set_current_run(state)
        files.append([event], state)
        self.can_resume = True
        return state, files

    def _discard(self, files: RunFiles) -> None:
        """Delete the seal and the rule file of a run that does not start."""
        if self.project:
            self.project.delete_records()
            self.project = None
        files.remove_rules()
