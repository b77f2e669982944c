"""A run from where it stands to its end: its agents, its tools, and those who hear of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import pytest

from pytest_loop.agents import prompts
from pytest_loop.agents.factory import AgentFactory
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.cli.readiness import workflow_gate
from pytest_loop.cli.task import known_context
from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.reporting.closing_verdict import render_status_block
from pytest_loop.core.text.redaction import RedactedStream, Redactor
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.inference.clarity import Confirm
from pytest_loop.inference.project_context import render_notes
from pytest_loop.processes import process_marks
from pytest_loop.run import restore
from pytest_loop.run.context import RunSettings, Tools
from pytest_loop.run.driver import Driver
from pytest_loop.run.earlier_runs import load_lessons
from pytest_loop.run.questions import Gates, is_at_terminal, line
from pytest_loop.run.steps import RunSteps, Steps
from pytest_loop.session.bytecode import Bytecode
from pytest_loop.session.history import Memory
from pytest_loop.session.redaction import DiscreetSession
from pytest_loop.session.runner import ChildSession
from pytest_loop.session.warm.client import Warm
from pytest_loop.settings.settings import Settings
from pytest_loop.show import github, summary
from pytest_loop.show import run as show
from pytest_loop.show.live import Live, tone
from pytest_loop.store.clock import parse_time
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed_files import SealedFiles

# Events after which other loops are told where this one stands.
_BLOCKS = frozenset((Kind.EVALUATION_DONE, Kind.STOPPED, Kind.FAILED))
# What is told even where a person wants to hear little.
_DECISIVE = frozenset(
    (
        Kind.EVALUATION_DONE,
        Kind.BASELINE_DONE,
        Kind.PHASE_SWITCHED,
        Kind.PHASE_ERROR,
        Kind.REGRESSION_DETECTED,
        Kind.PLATEAU_REACHED,
    )
)


@dataclass
class Running:
    """Who works, with what, and who is told; `named` are the agents of this command line, given in `folder`."""

    root: Path
    folder: Path
    settings: Settings
    named: Sequence[str]
    hook: Any
    stream: TextIO
    say: PrintLine
    project: SealedFiles | None = None
    bytecode: Bytecode | None = None
    warm: Warm | None = None
    live: Live | None = None
    is_wanted: Callable[[], bool] = lambda: True
    make_steps: Callable[[RunState, Tools], Steps] = lambda _state, _tools: RunSteps()
    memory: Memory = field(default_factory=Memory)
    redact: Redactor = field(default_factory=lambda: Redactor(os.environ))

    def check(self) -> None:
        """What can be seen to be wrong before anything is done: agents, and prompts of one's own."""
        if self.settings.agents.prompts:
            prompts.check_templates(self.root / self.settings.agents.prompts)
        for name, specs in (
            ("--loop-agent", self.settings.agents.agent),
            ("--loop-judge", (self.settings.agents.judge,)),
        ):
            for spec in filter(None, specs):
                try:
                    self.factory.check(spec)
                except AgentUnavailableError as error:
                    raise pytest.UsageError(f"{name}: {error}") from None

    def run(self, state: RunState, files: RunFiles, store: Store) -> RunState:
        """To its end; what agents and sessions say is shown, and those who watch a build hear what became of it."""
        agents: list[Agent] = []
        judge: Agent | None = None
        try:
            agents = [
                self.factory.make(spec) for spec in self.named or state.setup.agents or self.settings.agents.agent
            ]
            judge = (
                self.factory.make(self.settings.agents.judge or state.setup.judge)
                if self.settings.agents.judge or state.setup.judge
                else None
            )
            driver = self._driver(state, files, store, agents, judge or (agents[0] if agents else None))
            with process_marks.mark_descendants(process_marks.compute_folder_mark(files.folder)), self._muted():
                state = driver.run()
            self._keep_best(state, files)
            self._end(state, files)  # whoever follows the run hears of its end before it is free again
        except AgentUnavailableError as error:
            raise pytest.UsageError(str(error)) from None
        finally:
            if self.live:
                self.live.close()
            for agent in (*agents, judge):
                if agent is not None:
                    agent.close()
            if self.project:
                self.project.close()
            files.release()
        return state

    def _end(self, state: RunState, files: RunFiles) -> None:
        if self.live:
            self.live.close()
        for told in show.end_lines(state):
            self.say(told)
        self._publish(state, files)

    def _publish(self, state: RunState, files: RunFiles) -> None:
        """Tell those who watch a build what fails where, and what became of the run."""
        if github.is_on_github(os.environ):
            for told in github.annotation_lines(state, github.folder_in_checkout(self.root, os.environ)):
                self.say(self.redact(told))
        if os.environ.get(summary.VARIABLE):
            text = self.redact(summary.summary(state, files.read_history().events))
            if problem := summary.append(text, os.environ):
                self.say(problem)

    @contextlib.contextmanager
    def _muted(self) -> Iterator[None]:
        """While tests and agents speak, GitHub obeys nothing in the log."""
        nonce = secrets.token_hex(16)
        if github.is_on_github(os.environ):
            self.say(github.muted(nonce))
        try:
            yield
        finally:
            if github.is_on_github(os.environ):
                self.say(github.unmuted(nonce))

    def _driver(
        self, state: RunState, files: RunFiles, store: Store, agents: list[Agent], judge: Agent | None
    ) -> Driver:
        settings = self.settings
        artifact = Artifact(self.root / state.setup.artifact)
        if state.setup.seal and self.project is None:
            self.project = restore.open_project(self.root, files, state.setup.seal)
            self.bytecode = Bytecode(self.root, is_new=False)
        live = self.live = Live(self.stream, tone(os.environ, settings.verbosity, settings.color))
        live.stand(state)
        session = self.session(state.setup.arguments, parse_time(state.created_at))
        session.heard = RedactedStream(live.session, self.redact)

        def is_wanted() -> bool:
            live.tick()
            return files.can_continue

        session.wanted = is_wanted
        run_settings = RunSettings(
            root=self.root,
            plan_by_agent=settings.agents.plan == "agent",
            prompts=self.root / settings.agents.prompts if settings.agents.prompts else None,
            critique_tokens=settings.agents.critique_tokens,
            localise=settings.agents.localise,
            timeout=settings.agents.agent_timeout,
            silence=settings.agents.agent_silence,
            confirmed=settings.judging.confirmed,
            nonce=secrets.token_hex(4),
            redact=self.redact,
            reuse=not settings.judging.no_reuse,
            stop_early=settings.judging.stop_early,
            gate=workflow_gate(state),
            context=render_notes(known_context(self.root)),
            lessons=load_lessons(store, files) if settings.agents.memory else (),
            case_timeout=settings.workload.case_timeout,
        )
        self.is_wanted = lambda: files.read_stop_request() is None
        gates = Gates(Confirm(settings.start.confirm), settings.start.yes, is_at_terminal(), self._ask)
        discreet = DiscreetSession(session, self.redact)
        tools = Tools(
            run_settings,
            files,
            artifact,
            discreet,
            agents,
            judge,
            self.hook,
            live,
            self.project,
            self._checkpoints(state),
            gates,
            (lambda question: self._ask(question) or "") if gates.is_terminal and not settings.start.yes else None,
            lambda rung, folder: self.factory.make_another(
                (self.named or state.setup.agents or settings.agents.agent)[rung], folder
            ),
        )
        steps = self.make_steps(state, tools)
        return Driver(state, select_machine(state), steps, store, tools, self._listen)

    def _checkpoints(self, state: RunState) -> Checkpoints | None:
        if self.project is None:
            return None
        found = Checkpoints(self.root, state.run_id)
        if found.unavailable_reason:
            self._tell(f"no checkpoints in git: {found.unavailable_reason}")
            return None
        return found

    def _keep_best(self, state: RunState, files: RunFiles) -> None:
        """The best files instead of the last, where the person wants that."""
        best = state.progress.best
        if self.project is None or self.settings.workspace.keep != "best" or state.stop.passed or best is None:
            return
        if best.iteration != state.iteration:
            restore.restore_iteration(self.project, files.read_history().events, best.iteration)
            files.write_artifact(self.redact(self.project.compute_diff().text), self.root / state.setup.artifact)
            self._tell(f"the files are those of iteration {best.iteration}, which scored {best.score:.3g}")

    @cached_property
    def factory(self) -> AgentFactory:
        """The factory of all agents of this run."""
        record = self.folder / self.settings.agents.record if self.settings.agents.record else None
        return AgentFactory(self.root, self.hook, self.redact, record)

    def check_candidates(self, state: RunState) -> None:
        """Several candidates need files to edit, and work trees to do so at once."""
        if state.setup.candidates == 1:
            return
        if state.setup.target is not Target.WORKSPACE:
            raise pytest.UsageError("--loop-candidates: expected a run that edits files, found one of a document")
        if reason := Checkpoints(self.root, state.run_id).unavailable_reason:
            raise pytest.UsageError(f"--loop-candidates: {reason}")

    def session(self, arguments: tuple[str, ...], since: float) -> ChildSession:
        """A session with these arguments, which nobody hears yet, of a run that exists since then."""
        if self.warm is None and self.settings.judging.session != "cold":
            self.warm = Warm(arguments, self.root, since, self.settings.judging.session == "warm", self._tell)
        return ChildSession(
            arguments,
            self.folder,
            self.settings.judging.session_timeout,
            os.environ,
            lambda _data: None,
            bytecode=self.bytecode,
            warm=self.warm,
            memory=self.memory,
        )

    def close(self) -> None:
        """Nothing more is judged."""
        for tool in (self.warm, self.bytecode):
            if tool is not None:
                tool.close()

    def _tell(self, line: str) -> None:
        """A line for the person, wherever the run stands."""
        (self.live.write if self.live else self.say)(line)

    def _listen(self, event: Event, state: RunState) -> None:
        """What has happened, in as many words as the person wants."""
        if self.live is None:
            return
        if self.settings.verbosity > 0:
            self.live.write(next(show.history_lines([event])).rstrip())
        is_decisive = event.kind in _DECISIVE
        for told in show.event_lines(event, state):
            (self.live.write if is_decisive else self.live.explain)(told)
        if self.settings.output.status_block and event.kind in _BLOCKS:
            self.live.write("\n".join(render_status_block(state, show.following(state))))
        self.live.stand(state)

    def _ask(self, question: str) -> str | None:
        """A question on the way, where nothing else is written."""
        if self.live:
            self.live.hide()
        return line(question, self.stream, self.is_wanted)
