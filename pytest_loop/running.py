"""A run from where it stands to its end: its agents, its tools, and those who hear of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import pytest

from pytest_loop.agents import prompts
from pytest_loop.agents.declared import declared
from pytest_loop.agents.factory import make
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.redacted_agent import Discreet
from pytest_loop.agents.replay_agent import Recorded
from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.reporting.closing_verdict import status_block
from pytest_loop.core.text.redaction import RedactedStream, Redactor, redactor
from pytest_loop.evaluate.bytecode import Bytecode
from pytest_loop.evaluate.discreet import DiscreetSession
from pytest_loop.evaluate.memory import Memory
from pytest_loop.evaluate.session import ChildSession
from pytest_loop.evaluate.warm import Warm
from pytest_loop.gates import Gates, is_at_terminal, line
from pytest_loop.inference.clarity import Confirm
from pytest_loop.inference.project_context import prompt_text
from pytest_loop.manner import workflow_gate
from pytest_loop.processes import process_marks
from pytest_loop.run import restore
from pytest_loop.run.driver import Driver
from pytest_loop.run.earlier_runs import remembered
from pytest_loop.run_options import RunOptions
from pytest_loop.show import github, summary, workload
from pytest_loop.show import run as show
from pytest_loop.show.live import Live, tone
from pytest_loop.store.clock import moment
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.tools import Settings, Tools
from pytest_loop.understanding import known_context
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed_files import SealedFiles

# Events after which other loops are told where this one stands.
_BLOCKS = frozenset(one.value for one in (Kind.EVALUATION_DONE, Kind.STOPPED, Kind.FAILED))
# What is told even where a person wants to hear little.
_DECISIVE = frozenset(
    one.value
    for one in (
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
    options: RunOptions
    named: Sequence[str]
    hook: Any
    stream: TextIO
    say: Callable[[str], None]
    project: SealedFiles | None = None
    bytecode: Bytecode | None = None
    warm: Warm | None = None
    live: Live | None = None
    is_wanted: Callable[[], bool] = lambda: True
    memory: Memory = field(default_factory=Memory)
    made: dict[str, Agent] = field(default_factory=dict)
    redact: Redactor = field(default_factory=lambda: redactor(os.environ))

    def check(self) -> None:
        """What can be seen to be wrong before anything is done: agents, and prompts of one's own."""
        if self.options.prompts:
            prompts.check(self.root / self.options.prompts)
        for name, specs in (("--loop-agent", self.options.agents), ("--loop-judge", (self.options.judge,))):
            for spec in filter(None, specs):
                try:
                    self._make(spec)
                except AgentUnavailableError as error:
                    raise pytest.UsageError(f"{name}: {error}") from None

    def run(self, state: RunState, files: RunFiles, store: Store) -> RunState:
        """To its end; what agents and sessions say is shown, and those who watch a build hear what became of it."""
        agents: list[Agent] = []
        judge: Agent | None = None
        try:
            agents = [self._agent(spec) for spec in self.named or state.agents or self.options.agents]
            judge = self._agent(self.options.judge or state.judge) if self.options.judge or state.judge else None
            driver = self._driver(state, files, store, agents, judge or (agents[0] if agents else None))
            with process_marks.marking(process_marks.mark_of(files.folder)), self._muted():
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
        options = self.options
        artifact = Artifact(self.root / state.artifact)
        if state.sealed and self.project is None:
            self.project = restore.opened(self.root, files, state.sealed)
            self.bytecode = Bytecode(self.root, is_new=False)
        live = self.live = Live(self.stream, tone(os.environ, options.verbosity, options.colour))
        live.stand(state)
        session = self.session(state.arguments, moment(state.created_at))
        session.heard = RedactedStream(live.session, self.redact)

        def is_wanted() -> bool:
            live.tick()
            return files.is_wanted

        session.wanted = is_wanted
        settings = Settings(
            root=self.root,
            plan_by_agent=options.plan == "agent",
            prompts=self.root / options.prompts if options.prompts else None,
            critique_tokens=options.critique_tokens,
            localise=options.localise,
            timeout=options.agent_timeout,
            silence=options.agent_silence,
            confirmed=options.confirmed,
            nonce=secrets.token_hex(4),
            redact=self.redact,
            reuse=options.reuse,
            stop_early=options.stop_early,
            gate=workflow_gate(state),
            context=prompt_text(known_context(self.root)),
            lessons=remembered(store, files) if options.memory else (),
            case_timeout=options.case_timeout,
        )
        self.is_wanted = lambda: files.stop_asked() is None
        gates = Gates(Confirm(options.confirm), options.yes, is_at_terminal(), self._ask)
        discreet = DiscreetSession(session, self.redact)
        tools = Tools(
            settings,
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
            (lambda question: self._ask(question) or "") if gates.is_terminal and not options.yes else None,
            lambda rung, folder: self._another((self.named or state.agents or options.agents)[rung], folder),
        )
        return Driver(state, store, tools, self._listen)

    def _checkpoints(self, state: RunState) -> Checkpoints | None:
        if self.project is None:
            return None
        found = Checkpoints(self.root, state.run_id)
        if found.reason:
            self._tell(f"no checkpoints in git: {found.reason}")
            return None
        return found

    def _keep_best(self, state: RunState, files: RunFiles) -> None:
        """The best files instead of the last, where the person wants that."""
        best = state.best
        if self.project is None or self.options.keep != "best" or state.stop.passed or best is None:
            return
        if best.iteration != state.iteration:
            restore.restored(self.project, files.read_history().events, best.iteration)
            files.write_artifact(self.redact(self.project.change().text), self.root / state.artifact)
            self._tell(f"the files are those of iteration {best.iteration}, which scored {best.score:.3g}")

    def _agent(self, spec: str) -> Agent:
        made = self._make(spec)
        if not self.options.record:
            return made
        return Recorded(made, self.folder / self.options.record)

    def _make(self, spec: str) -> Agent:
        if spec not in self.made:
            self.made[spec] = self._discreet(spec, self.root)
        return self.made[spec]

    def _another(self, spec: str, folder: Path) -> Agent:
        """One more agent of the same kind, at home in another folder."""
        made = self._discreet(spec, folder)
        return Recorded(made, self.folder / self.options.record) if self.options.record else made

    def _discreet(self, spec: str, root: Path) -> Agent:
        own: Agent | None = self.hook.pytest_loop_make_agent(spec=spec)
        return Discreet(own or make(spec, root, declared(self.root)), self.redact)

    def check_candidates(self, state: RunState) -> None:
        """Several candidates need files to edit, and work trees to do so at once."""
        if state.candidates == 1:
            return
        if state.target is not Target.WORKSPACE:
            raise pytest.UsageError("--loop-candidates: expected a run that edits files, found one of a document")
        if reason := Checkpoints(self.root, state.run_id).reason:
            raise pytest.UsageError(f"--loop-candidates: {reason}")

    def session(self, arguments: tuple[str, ...], since: float) -> ChildSession:
        """A session with these arguments, which nobody hears yet, of a run that exists since then."""
        if self.warm is None and self.options.session != "cold":
            self.warm = Warm(arguments, self.root, since, self.options.session == "warm", self._tell)
        return ChildSession(
            arguments,
            self.folder,
            self.options.session_timeout,
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
        if self.options.verbosity > 0:
            self.live.write(next(show.history_lines([event])).rstrip())
        is_decisive = event.event in _DECISIVE
        book = state.notebook
        for told in workload.event_lines(event, state, book) if book else show.event_lines(event, state):
            (self.live.write if is_decisive else self.live.explain)(told)
        if self.options.status_block and event.event in _BLOCKS:
            self.live.write("\n".join(status_block(state, show.following(state))))
        self.live.stand(state)

    def _ask(self, question: str) -> str | None:
        """A question on the way, where nothing else is written."""
        if self.live:
            self.live.hide()
        return line(question, self.stream, self.is_wanted)
