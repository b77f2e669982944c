"""Drive a run from its state to its end: make its agents and context, and clean up after them."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest

from pytest_loop.agents import prompts
from pytest_loop.agents.factory import AgentFactory
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.redactor import RedactedStream, Redactor
from pytest_loop.core.text.score_text import format_score
from pytest_loop.inference.gates import Confirm
from pytest_loop.inference.project_context import FILES, extract_context, render_notes
from pytest_loop.inference.project_files import read_files
from pytest_loop.inference.workflow import Workflow
from pytest_loop.processes import process_marks
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.run import restore, worktree
from pytest_loop.run.console import Console
from pytest_loop.run.context import RunContext
from pytest_loop.run.driver import Driver
from pytest_loop.run.earlier_runs import load_lessons
from pytest_loop.run.fence import RunFence, choose_tool, plan_fence, resolve_writable_paths
from pytest_loop.run.questions import Gates
from pytest_loop.run.reporter import RunReporter
from pytest_loop.run.sessions import SessionFactory, set_display
from pytest_loop.run.steps import RunSteps, Steps
from pytest_loop.session.redaction import RedactedSession, redact_result
from pytest_loop.session.result import BaselineResult
from pytest_loop.session.runner import Session, SubprocessSession
from pytest_loop.settings.settings import Settings
from pytest_loop.show.live_view import SHOW_SESSIONS
from pytest_loop.store.clock import parse_time
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.clean_room import CleanRoom
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
    _run_shares: RunShares | None = None

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
                context = self._make_context(state, files, store, project, reporter, cleanup)
                machine, steps = select_machine(state), self.make_steps(state, context)

                def rebuild_context(state: RunState) -> RunContext:
                    fence = plan_fence(self.settings, store.root, project, state)
                    session = self._make_judging_session(state, files, reporter, fence, project, cleanup)
                    return replace(context, session=session, fence=fence, run_shares=self._run_shares)

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

    def _make_context(
        self,
        state: RunState,
        files: RunFiles,
        store: Store,
        project: SealedFiles,
        reporter: RunReporter,
        cleanup: ExitStack,
    ) -> RunContext:
        settings = self.settings
        chosen = settings.agents
        specs = (chosen.agent if "--loop-agent" in settings.flags else ()) or state.setup.agents or chosen.agent
        agents = [self._make_agent(spec, cleanup) for spec in specs]
        judge_spec = chosen.judge or state.setup.judge
        judge = self._make_agent(judge_spec, cleanup) if judge_spec else None
        gates = Gates(
            Confirm(settings.start.ask),
            settings.start.yes,
            self.console.can_ask,
            lambda question: self.console.read_answer(question, lambda: files.read_stop_request() is None),
        )
        can_ask = gates.is_terminal and not settings.start.yes
        fence = plan_fence(settings, store.root, project, state)
        return RunContext(
            settings,
            files,
            Artifact(settings.root / state.setup.artifact),
            self._make_judging_session(state, files, reporter, fence, project, cleanup),
            agents,
            judge or (agents[0] if agents else None),
            self.hook,
            reporter.live,
            project,
            self._find_checkpoints(state, reporter),
            gates,
            ask_user=(lambda question: gates.read_answer(question) or "") if can_ask else None,
            make_candidate=lambda index, folder: self.agents.make_for_folder(specs[index], folder),
            redact=self.redact,
            nonce=secrets.token_hex(4),
            workflow_gate=Workflow(state.setup.draft.workflow).instruction if state.setup.draft.workflow else "",
            project_notes=render_notes(extract_context(read_files(settings.root, FILES))),
            lessons=load_lessons(store, files) if chosen.memory else (),
            fence=fence,
            clean_room=self._open_clean_room(state, files, project, fence, cleanup),
            baseline_result=self._redact_baseline_result(),
            run_shares=self._run_shares,
        )

    def _redact_baseline_result(self) -> BaselineResult | None:
        """Return the baseline result of this process without secrets; None if another process took the baseline."""
        baseline = self.sessions.baseline_result
        return baseline and BaselineResult(baseline.digest, redact_result(baseline.result, self.redact))

    def _open_clean_room(
        self, state: RunState, files: RunFiles, project: SealedFiles, fence: RunFence, cleanup: ExitStack
    ) -> CleanRoom | None:
        """Return the clean room for deciding evaluations, if the start of the run listed what is left out."""
        seal = state.setup.seal
        if seal is None or not seal.left_out:
            return None
        document = state.setup.artifact if state.setup.target is Target.ARTIFACT else ""
        room = CleanRoom(project, files.folder, fence.opened, document=document)
        cleanup.callback(room.close)
        room.open(seal.left_out)
        return room

    def _make_agent(self, spec: str, cleanup: ExitStack) -> Agent:
        agent = self.agents.make(spec)
        cleanup.callback(agent.close)
        return agent

    def _make_judging_session(
        self,
        state: RunState,
        files: RunFiles,
        reporter: RunReporter,
        fence: RunFence,
        project: SealedFiles,
        cleanup: ExitStack,
    ) -> Session:
        """Return the session of the run, spread over the workers of `--loop-cluster`; its results have no secrets."""
        local = self._make_session(state, files, reporter, fence)
        session: Session = local
        address = self.settings.judging.cluster
        if address and state.setup.target is not Target.WORKSPACE:
            self.console.print_line("--loop-cluster has no effect on a document: its rules are judged here")
        elif address:
            from pytest_loop.cluster.cluster_session import ClusterSession

            builds = self.settings.judging.cluster_sync
            cluster = ClusterSession(local, project, address, self.console.print_line, builds_environments=builds)
            cluster.on_progress = files.write_progress
            cluster.connect()
            session, self._run_shares = cluster, cluster.run_shares
            cleanup.callback(cluster.close)
        return RedactedSession(session, self.redact)

    def _make_session(
        self, state: RunState, files: RunFiles, reporter: RunReporter, fence: RunFence
    ) -> SubprocessSession:
        """Return the session of the run, fenced, shown live and stopped with the run."""
        session = self.sessions.make(state.setup.arguments, parse_time(state.created_at))
        # Rules about a document may write beside it, and it may lie in the folder of the run.
        session.fence = fence.build(self.settings.root, is_state_open=state.setup.target is Target.ARTIFACT)
        session.on_output = RedactedStream(reporter.live.write_session_output, self.redact)

        def should_continue() -> bool:
            reporter.live.refresh()
            return files.can_continue

        session.should_continue = should_continue
        set_display(session, reporter.console.look)
        return session

    def _find_checkpoints(self, state: RunState, reporter: RunReporter) -> Checkpoints | None:
        """Return where the files of every iteration are kept in git; a document has no checkpoints."""
        if state.setup.target is not Target.WORKSPACE:
            return None
        checkpoints = Checkpoints(self.settings.root, state.run_id)
        if checkpoints.unavailable_reason:
            reporter.live.write(f"no checkpoints in git: {checkpoints.unavailable_reason}", SHOW_SESSIONS)
            return None
        return checkpoints

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
