"""Drive a run from its state to its end: open its files, make its context, and clean up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pytest

from pytest_loop.agents import prompts
from pytest_loop.agents.factory import AgentFactory
from pytest_loop.agents.protocol import AgentUnavailableError
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.core.text.score_text import format_score
from pytest_loop.processes import process_marks
from pytest_loop.run import restore, worktree
from pytest_loop.run.console import Console
from pytest_loop.run.context import RunContext
from pytest_loop.run.context_factory import ContextFactory
from pytest_loop.run.driver import Driver
from pytest_loop.run.fence import choose_tool, resolve_writable_paths
from pytest_loop.run.reporter import RunReporter
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.run.steps import RunSteps, Steps
from pytest_loop.settings.settings import Settings
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class Runner:
    """Drive one run with the settings of this process."""

    settings: Settings
    hook: Any
    console: Console
    sessions: SessionFactory
    make_steps: Callable[[RunState, RunContext], Steps] = lambda _state, _context: RunSteps()
    redact: Redactor = field(default_factory=lambda: Redactor(os.environ))

    @cached_property
    def agents(self) -> AgentFactory:
        record = self.settings.agents.record
        return AgentFactory(
            self.settings.root, self.hook, self.redact, self.settings.folder / record if record else None
        )

    def check_settings(self) -> None:
        """Raise `UsageError` for prompts, fences and agents that cannot be used."""
        if self.settings.prompts:
            prompts.check_templates(self.settings.prompts)
        choose_tool(self.settings)
        resolve_writable_paths(self.settings)
        chosen = self.settings.agents
        for flag, specs in (("--loop-agent", chosen.agent), ("--loop-judge", (chosen.judge,))):
            for spec in filter(None, specs):
                try:
                    self.agents.check(spec)
                except AgentUnavailableError as error:
                    raise pytest.UsageError(f"{flag}: {error}") from None

    def check_candidates(self, state: RunState) -> None:
        """Raise `UsageError` for several candidates without files to edit, or without git for their worktrees."""
        if state.setup.candidates == 1:
            return
        if state.setup.target is not Target.WORKSPACE:
            raise pytest.UsageError("--loop-candidates: expected a run that edits files, found one of a document")
        if reason := Checkpoints(self.settings.root, state.run_id).unavailable_reason:
            raise pytest.UsageError(f"--loop-candidates: {reason}")

    def run(self, state: RunState, files: RunFiles, store: Store, project: SealedFiles | None) -> RunState:
        """Drive a run to its end, and release its files.

        `project` is None if another process started the run: then open it from the run's folder.
        """
        try:
            with ExitStack() as cleanup:
                cleanup.callback(files.release)
                if project is None:
                    state, project = self._open_project(state, files)
                cleanup.callback(project.close)
                project.session_outputs |= set(self._list_outputs())
                started = time.time()
                project.find_shared = lambda: worktree.find_shared_files(store, state, started)
                reporter = RunReporter(self.settings, self.console, self.redact)
                cleanup.callback(reporter.live.hide)
                reporter.show_position(state)
                factory = ContextFactory(
                    self.settings, self.hook, self.agents, self.sessions, store, files, project, reporter, cleanup
                )
                context = factory.make(state)
                machine, steps = select_machine(state), self.make_steps(state, context)
                rebuild_context = partial(factory.rebuild, context)
                driver = Driver(state, machine, steps, store, context, reporter.report_event, rebuild_context)
                return self._drive(driver, reporter)
        except AgentUnavailableError as error:
            raise pytest.UsageError(str(error)) from None

    def _open_project(self, state: RunState, files: RunFiles) -> tuple[RunState, SealedFiles]:
        """Open the files of a run that another process began; put sealed ones back before anything else."""
        self.sessions.cache_bytecode(is_new=False)
        state, project = restore.open_project(self.settings.root, files, state)
        findings = restore.put_back_sealed(project, files, state)
        self.console.print_lines(f"{finding.path}: {finding.detail}" for finding in findings)
        if findings:
            self.console.print_line(
                f"sealed files stay as they were when the run began; copies are in {files.folder / 'discarded'}, and a "
                "new run uses what you change"
            )
        return state, project

    def _list_outputs(self) -> Iterator[str]:
        """Yield the files of the project that this process itself writes beside those of the run."""
        settings = self.settings
        output, root = settings.output, settings.root.resolve()
        names = (output.json, output.report, settings.agents.record, settings.workload.debrief)
        for path in ((settings.folder / name).resolve() for name in filter(None, names)):
            if path.is_relative_to(root):
                yield path.relative_to(root).as_posix()

    def _drive(self, driver: Driver[RunState], reporter: RunReporter) -> RunState:
        mark = process_marks.compute_folder_mark(driver.context.files.folder)
        with process_marks.mark_descendants(mark), reporter.mute_commands():
            state = driver.run()
        context = driver.context
        self._restore_best(state, context)
        reporter.report_end(state, context.files)  # before the files are released: a follower reads the end
        if context.fence.warning:
            self.console.print_line(context.fence.warning)
        return state

    def _restore_best(self, state: RunState, context: RunContext) -> None:
        """Restore the files of the best iteration after a run without success, if `--loop-keep best` is set."""
        best, project = state.progress.best, context.project
        is_wanted = self.settings.workspace.keep == "best" and state.setup.target is Target.WORKSPACE
        if not is_wanted or best is None or state.stop.passed:
            return
        if best.iteration != state.iteration:
            restore.restore_iteration(project, context.files.read_history().events, best.iteration)
            context.files.write_artifact(self.redact(project.compute_diff().text), context.artifact.path)
            context.live.write(
                f"the files are those of iteration {best.iteration}, which scored {format_score(best.score)}"
            )
