"""A run from where it stands to its end: its agents, its tools, and those who hear of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import pytest

from pytest_loop import keeping, marks
from pytest_loop.agents import prompts
from pytest_loop.agents.declared import declared
from pytest_loop.agents.discreet import Discreet
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.replay import Recorded
from pytest_loop.agents.specs import make
from pytest_loop.core.redacting import RedactedStream, Redactor, redactor
from pytest_loop.core.run import Event, RunState, Target
from pytest_loop.driver import Driver
from pytest_loop.evaluate.bytecode import Bytecode
from pytest_loop.evaluate.discreet import DiscreetSession
from pytest_loop.evaluate.memory import Memory
from pytest_loop.evaluate.session import ChildSession
from pytest_loop.evaluate.warm import Warm
from pytest_loop.run_options import RunOptions
from pytest_loop.show import github, summary
from pytest_loop.show import run as show
from pytest_loop.show.live import Live
from pytest_loop.store import RunFiles, Store, moment
from pytest_loop.tools import Settings, Tools
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed import SealedFiles


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
            with marks.marking(marks.mark_of(files.folder)), self._muted():
                state = driver.run()
            self._keep_best(state, files)
        except AgentUnavailableError as error:
            raise pytest.UsageError(str(error)) from None
        finally:
            for agent in (*agents, judge):
                if agent is not None:
                    agent.close()
            if self.project:
                self.project.close()
            files.release()
        for line in show.end_lines(state):
            self.say(line)
        self._publish(state, files)
        return state

    def _publish(self, state: RunState, files: RunFiles) -> None:
        """Tell those who watch a build what fails where, and what became of the run."""
        if github.is_on_github(os.environ):
            for line in github.annotation_lines(state, github.folder_in_checkout(self.root, os.environ)):
                self.say(self.redact(line))
        if os.environ.get(summary.VARIABLE):
            told = self.redact(summary.summary(state, files.read_history().events))
            if problem := summary.append(told, os.environ):
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
            self.project = keeping.opened(self.root, files, state.sealed)
            self.bytecode = Bytecode(self.root, is_new=False)
        live = Live(self.stream, width=shutil.get_terminal_size().columns)
        session = self.session(state.arguments, moment(state.created_at))
        session.heard = RedactedStream(self.heard, self.redact)
        session.wanted = lambda: files.is_wanted
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
        )
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
            lambda rung, folder: self._another((self.named or state.agents or options.agents)[rung], folder),
        )
        return Driver(state, store, tools, self._listen)

    def _checkpoints(self, state: RunState) -> Checkpoints | None:
        if self.project is None:
            return None
        found = Checkpoints(self.root, state.run_id)
        if found.reason:
            self.say(f"no checkpoints in git: {found.reason}")
            return None
        return found

    def _keep_best(self, state: RunState, files: RunFiles) -> None:
        """The best files instead of the last, where the person wants that."""
        best = state.best
        if self.project is None or self.options.keep != "best" or state.stop.passed or best is None:
            return
        if best.iteration != state.iteration:
            keeping.restored(self.project, files.read_history().events, best.iteration)
            files.write_artifact(self.redact(self.project.change().text), self.root / state.artifact)
            self.say(f"the files are those of iteration {best.iteration}, which scored {best.score:.3g}")

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
            self.warm = Warm(arguments, self.root, since, self.options.session == "warm", self.say)
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

    def _listen(self, event: Event, state: RunState) -> None:
        for line in show.event_lines(event, state):
            self.say(line)

    def heard(self, data: bytes) -> None:
        """Show what a session says."""
        self.stream.write(data.decode("utf-8", "replace"))
        self.stream.flush()
