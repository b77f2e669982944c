"""The entry of runs: starts or resumes a run, drives it, and writes its results."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.agents.installed_clients import choose_default_agent, list_unobservable_limits
from pytest_loop.cli.background import get_exit_code
from pytest_loop.cli.commands import Commands
from pytest_loop.cli.delegation import Delegation
from pytest_loop.cli.draft import Draft, NothingToJudgeError, make_draft
from pytest_loop.cli.output import build_result, check_report_path, write_debrief, write_json, write_report
from pytest_loop.cli.readiness import assess_readiness
from pytest_loop.cli.resume import resume_run
from pytest_loop.cli.sealing import seal_project, take_baseline
from pytest_loop.cli.task import read_task, read_task_context
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState, State
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import LoopError
from pytest_loop.inference.gates import Confirm
from pytest_loop.inference.task_phrases import Route, parse_task
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.run import worktree
from pytest_loop.run.console import Console
from pytest_loop.run.context import RunContext
from pytest_loop.run.runner import Runner
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.run.steps import RunSteps, Steps
from pytest_loop.settings.command_line import find_unknown_flag
from pytest_loop.settings.settings import Settings, read_settings
from pytest_loop.show import experiment_text, run_text
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.run_names import make_alias
from pytest_loop.workloads.experiment_steps import ExperimentSteps
from pytest_loop.workloads.new_experiment import NewExperiment
from pytest_loop.workspace.sealed_files import SealedFiles


def main(config: pytest.Config, values: argparse.Namespace) -> int:
    """Execute what the flags ask for, and return the exit code; raises `UsageError` for bad input."""
    if config.pluginmanager.has_plugin("loop"):
        raise pytest.UsageError(
            "the plugin pytest-loop (a test repeater) is active and makes sessions run nothing: use -p no:loop"
        )
    if problem := find_unknown_flag([str(argument) for argument in config.invocation_params.args]):
        raise pytest.UsageError(problem)
    try:
        settings = read_settings(config, values)
        console = Console(sys.stderr if settings.output.json == "-" else sys.stdout)
        store = Store(settings.root, settings.start.dir)
        if settings.command:
            return Commands(settings, store, console).execute(settings.command)
        return Start(settings, config.hook, store, console).execute()
    except NothingToJudgeError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    except LoopError as error:
        raise pytest.UsageError(str(error)) from None


def _choose_steps(state: RunState, context: RunContext) -> Steps:
    """Return the steps of a run or of an experiment."""
    return ExperimentSteps(context.ask) if isinstance(state, ExperimentState) else RunSteps()


@dataclass
class Start:
    """One invocation that starts or resumes a run; `project` are its sealed files, if this process sealed them."""

    settings: Settings
    hook: Any
    store: Store
    console: Console
    project: SealedFiles | None = None
    is_started: bool = False
    is_detached: bool = False
    sessions: SessionFactory = field(init=False)
    runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        self.sessions = SessionFactory(self.settings, self.console.print_line)
        self.runner = Runner(self.settings, self.hook, self.console, self.sessions, _choose_steps)

    def execute(self) -> int:
        """Return the exit code of the run."""
        check_report_path(self.settings.output)
        self.is_started = self.settings.commands.resume is not None
        self.is_detached = self.settings.start.detach
        try:
            with interrupt_on_signals():
                return self._execute()
        except KeyboardInterrupt:
            hint = "the run can go on with pytest --loop-resume" if self.is_started else "nothing was started"
            self.console.print_line(f"interrupted: {hint}")
            return int(pytest.ExitCode.INTERRUPTED)
        finally:
            self.sessions.close()

    def _execute(self) -> int:
        delegation = Delegation(self.store, self.settings, self.console)
        exit_code = delegation.delegate()
        if exit_code is not None:
            return exit_code
        if self.is_started:
            state, files = resume_run(self.store, self.settings, self.console)
        elif self.settings.workload.manifest:
            state, files = self._start_experiment()
        else:
            state, files = self._start_run()
        if self.is_detached and not state.is_over:
            return delegation.detach(files)
        if not state.is_over:
            state = self.runner.run(state, files, self.store, self.project)
        worktree.hand_over(self.settings.root, files, state, self.console.print_line)
        self._write_outputs(state, files)
        return get_exit_code(state)

    def _write_outputs(self, state: RunState, files: RunFiles) -> None:
        output, print_line = self.settings.output, self.console.print_line
        if self.settings.workload.debrief:
            write_debrief(files, self.settings.workload.debrief, print_line)
        if output.json or output.report:
            history = files.read_history()
            if output.json:
                write_json(build_result(files, state, history), output.json, print_line)
            if output.report:
                write_report(output, state, history.events, print_line)

    def _start_run(self) -> tuple[RunState, RunFiles]:
        """Start a new run: read the task, draft, seal and take the baseline, confirm, begin."""
        task = read_task(self.settings)
        self.is_detached |= parse_task(task).route is Route.BACKGROUND
        self.runner.check_agents()
        context = read_task_context(task, self.settings.root, can_judge=self._can_judge())
        files = self._reserve_run(task)
        try:
            draft = make_draft(self.settings, context, files, self.sessions)
            state = self._choose_agent(draft.build_state(files.alias))
            self.runner.check_candidates(state)
            if state.setup.target is Target.WORKSPACE:
                state = self._seal(draft, state, files)
            state = RUN_MACHINE.begin(state)
            allow = self.settings.workspace.allow
            readiness = assess_readiness(
                state, allow, draft.context.project, says_when_done=draft.context.says_when_done
            )
            state = state.replace(draft=readiness.confirmed_draft)
            self.console.print_lines(run_text.render_draft(state, draft.find_origins(state)))
            self.console.print_lines(readiness.render_lines())
            self.console.print_lines(draft.context.render_notes())
            state = self._confirm(state, readiness.question)
        except BaseException:
            self._discard(files)
            raise
        return self._begin(state, files, RunStarted(state=state))

    def _start_experiment(self) -> tuple[RunState, RunFiles]:
        """Start an experiment: the cases of the workload judge, and its manifest names what may be edited."""
        experiment = NewExperiment(self.settings)
        self.runner.check_agents()
        files = self._reserve_run(experiment.workload_id)
        try:
            session = self.sessions.make(experiment.build_arguments(), time.time())
            agents = self.settings.agents.agent or tuple(filter(None, (choose_default_agent(are_files_edited=False),)))
            state, self.project = experiment.begin(files, session, agents)
            self.sessions.cache_bytecode(is_new=True)
            state = EXPERIMENT_MACHINE.begin(state)
            self.console.print_lines(experiment_text.render_experiment_draft(state))
            state = self._confirm(state, "start?")
        except BaseException:
            self._discard(files)
            raise
        approved = "--loop-yes" if self.settings.start.yes else "asked"
        return self._begin(state, files, experiment.make_start(state, approved))

    def _reserve_run(self, text: str) -> RunFiles:
        """Return the files of a new run, named by the user or after a text."""
        return self.store.get_run(self.store.make_unique_alias(self.settings.start.alias or make_alias(text)))

    def _can_judge(self) -> bool:
        """Return whether an agent can judge rules that are sentences."""
        agents = self.settings.agents
        specs = agents.agent or (choose_default_agent(are_files_edited=True),)
        return bool(agents.judge) or any(spec.partition(":")[0] not in ("", BUILTIN) for spec in specs)

    def _choose_agent(self, state: RunState) -> RunState:
        """Add the default agent to a run without one."""
        if state.setup.agents:
            return state
        agent = choose_default_agent(are_files_edited=state.setup.target is Target.WORKSPACE)
        return state.replace(agents=(agent,)) if agent else state

    def _seal(self, draft: Draft, state: RunState, files: RunFiles) -> RunState:
        self.project = seal_project(draft, state, files)
        self.console.print_line("running the tests twice before the first edit ...")
        draft.session.bytecode = self.sessions.cache_bytecode(is_new=True)
        return take_baseline(state, self.project, draft.session)

    def _confirm(self, state: State, question: str) -> State:
        """Return the state with what confirmed it; raise `KeyboardInterrupt` if the user declines."""
        self.console.print_lines(list_unobservable_limits(state.setup.agents, state.setup.limits))
        if self.is_detached:
            self.console.print_line("works       in the background")
        if self.settings.start.yes:
            confirmed_by = "--loop-yes"
        elif self.settings.start.confirm == Confirm.NEVER.value:
            confirmed_by = "loop_confirm"
        elif self.console.confirm(question):
            confirmed_by = "terminal"
        elif self.console.can_ask:
            raise KeyboardInterrupt
        else:
            arguments = shlex.join(self.settings.arguments)
            raise pytest.UsageError(f"nobody is here to confirm this: start it with pytest {arguments} --loop-yes")
        return state.replace(draft=state.setup.draft.model_copy(update={"confirmed_by": confirmed_by}))

    def _begin(self, state: RunState, files: RunFiles, payload: RunStarted) -> tuple[RunState, RunFiles]:
        """Write the first event of a run that this process now owns."""
        self.store.acquire_run(files, is_new=True, force=self.settings.start.force)
        worktree.refuse_overlap(self.store, files, state)
        event = Event.create(state, payload, state.created_at)
        self.store.set_current_run(state)
        files.append([event], state)
        self.is_started = True
        return state, files

    def _discard(self, files: RunFiles) -> None:
        """Remove what a run that does not start has written."""
        if self.project:
            self.project.discard()
        files.remove_rules()
