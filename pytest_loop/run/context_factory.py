"""Make the context of a run: its agents, judging session, gates, fence and clean room."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pytest_loop.agents.factory import AgentFactory
from pytest_loop.agents.protocol import Agent
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.redactor import RedactedStream
from pytest_loop.inference.gates import Confirm
from pytest_loop.inference.project_context import FILES, extract_context, render_notes
from pytest_loop.inference.project_files import read_files
from pytest_loop.inference.workflow import Workflow
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.run.affected_tests import AffectedTests
from pytest_loop.run.context import RunContext
from pytest_loop.run.earlier_runs import load_lessons
from pytest_loop.run.fence import RunFence, plan_fence
from pytest_loop.run.questions import Gates
from pytest_loop.run.reporter import RunReporter
from pytest_loop.run.sessions import SessionFactory, set_display
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


@dataclass(frozen=True)
class ContextFactory:
    """Make the context of one run; `cleanup` closes its agents, sessions and clean room."""

    settings: Settings
    hook: Any
    agents: AgentFactory
    sessions: SessionFactory
    store: Store
    files: RunFiles
    project: SealedFiles
    reporter: RunReporter
    cleanup: ExitStack

    def make(self, state: RunState) -> RunContext:
        """Return the context of the run in this state."""
        settings, chosen, console = self.settings, self.settings.agents, self.reporter.console
        specs = (chosen.agent if "--loop-agent" in settings.flags else ()) or state.setup.agents or chosen.agent
        agents = [self._make_agent(spec) for spec in specs]
        judge_spec = chosen.judge or state.setup.judge
        judge = self._make_agent(judge_spec) if judge_spec else None
        gates = Gates(
            Confirm(settings.start.ask),
            settings.start.yes,
            console.can_ask,
            lambda question: console.read_answer(question, lambda: self.files.requests.read_stop_reason() is None),
        )
        can_ask = gates.is_terminal and not settings.start.yes
        fence = plan_fence(settings, self.store.root, self.project, state)
        session, run_shares = self._make_judging_session(state, fence)
        baseline = self._redact_baseline_result()
        return RunContext(
            settings,
            self.files,
            Artifact(settings.root / state.setup.artifact),
            session,
            agents,
            judge or (agents[0] if agents else None),
            self.hook,
            self.reporter.live,
            self.project,
            self._find_checkpoints(state),
            gates,
            ask_user=(lambda question: gates.read_answer(question) or "") if can_ask else None,
            make_candidate=lambda index, folder: self.agents.make_for_folder(specs[index], folder),
            redact=self.reporter.redact,
            nonce=secrets.token_hex(4),
            workflow_gate=Workflow(state.setup.draft.workflow).instruction if state.setup.draft.workflow else "",
            project_notes=render_notes(extract_context(read_files(settings.root, FILES))),
            lessons=load_lessons(self.store, self.files) if chosen.memory else (),
            fence=fence,
            clean_room=self._open_clean_room(state, fence),
            baseline_result=baseline,
            run_shares=run_shares,
            affected_tests=AffectedTests(self.project.current, dict(baseline.result.reach) if baseline else {}),
        )

    def rebuild(self, context: RunContext, state: RunState) -> RunContext:
        """Return a context whose fence and session fit the seal of a later state."""
        fence = plan_fence(self.settings, self.store.root, self.project, state)
        session, run_shares = self._make_judging_session(state, fence)
        return replace(context, session=session, run_shares=run_shares, fence=fence)

    def _make_agent(self, spec: str) -> Agent:
        agent = self.agents.make(spec)
        self.cleanup.callback(agent.close)
        return agent

    def _make_judging_session(self, state: RunState, fence: RunFence) -> tuple[Session, RunShares | None]:
        """Return the session of the run, which redacts its results, and a function that divides trials among workers.

        Trials are test runs with an edit of the built-in agent or a mutant. Without `--loop-cluster` the function is
        None, and everything runs here.
        """
        local = self._make_session(state, fence)
        session: Session = local
        run_shares: RunShares | None = None
        address, print_line = self.settings.judging.cluster, self.reporter.console.print_line
        if address and state.setup.target is not Target.WORKSPACE:
            print_line("--loop-cluster has no effect on a document: its rules are judged here")
        elif address:
            from pytest_loop.cluster.cluster_session import ClusterSession

            builds = self.settings.judging.cluster_sync
            written = (state.setup.seal and state.setup.seal.written) or ()
            cluster = ClusterSession(local, self.project, address, print_line, builds, written)
            cluster.on_progress = self.files.write_progress
            cluster.connect()
            session, run_shares = cluster, cluster.run_shares
            self.cleanup.callback(cluster.close)
        return RedactedSession(session, self.reporter.redact), run_shares

    def _make_session(self, state: RunState, fence: RunFence) -> SubprocessSession:
        """Return the session of the run, fenced, shown live and stopped with the run."""
        live = self.reporter.live
        session = self.sessions.make(state.setup.arguments, parse_time(state.created_at))
        # Rules about a document may write beside it, and it may lie in the folder of the run.
        session.fence = fence.build(self.settings.root, is_state_open=state.setup.target is Target.ARTIFACT)
        session.on_output = RedactedStream(live.write_session_output, self.reporter.redact)

        def should_continue() -> bool:
            live.refresh()
            return self.files.requests.can_continue

        session.should_continue = should_continue
        set_display(session, self.reporter.console.look)
        return session

    def _find_checkpoints(self, state: RunState) -> Checkpoints | None:
        """Return the checkpoints in git; None without git, and for a document."""
        if state.setup.target is not Target.WORKSPACE:
            return None
        checkpoints = Checkpoints(self.settings.root, state.run_id)
        if checkpoints.unavailable_reason:
            self.reporter.live.write(f"no checkpoints in git: {checkpoints.unavailable_reason}", SHOW_SESSIONS)
            return None
        return checkpoints

    def _open_clean_room(self, state: RunState, fence: RunFence) -> CleanRoom | None:
        """Return the clean room for deciding evaluations; None if the run recorded no left-out files at its start."""
        seal = state.setup.seal
        if seal is None or not seal.left_out:
            return None
        document = state.setup.artifact if state.setup.target is Target.ARTIFACT else ""
        room = CleanRoom(self.project, self.files.folder, fence.opened, document=document)
        self.cleanup.callback(room.close)
        room.open(seal.left_out)
        return room

    def _redact_baseline_result(self) -> BaselineResult | None:
        """Return the baseline result of this process without secrets; None if another process took the baseline."""
        baseline = self.sessions.baseline_result
        return baseline and BaselineResult(baseline.digest, redact_result(baseline.result, self.reporter.redact))
