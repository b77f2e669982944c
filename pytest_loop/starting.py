"""From options to a run: the task, the draft, the confirmation, or a run that goes on."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import pytest

from pytest_loop import commands, keeping, process
from pytest_loop.agents import prompts
from pytest_loop.agents.declared import declared
from pytest_loop.agents.discreet import Discreet
from pytest_loop.agents.installed import only_one, unobserved
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.replay import Recorded
from pytest_loop.agents.specs import make
from pytest_loop.core import machine, outcome
from pytest_loop.core.model import Plan
from pytest_loop.core.redacting import RedactedStream, Redactor, redactor
from pytest_loop.core.run import Event, Kind, RunState, Status, Target
from pytest_loop.driver import Driver
from pytest_loop.errors import BusyError, LoopError, StateError
from pytest_loop.evaluate.bytecode import Bytecode
from pytest_loop.evaluate.discreet import DiscreetSession
from pytest_loop.evaluate.session import ColdSession
from pytest_loop.new_run import NewRun, NothingToJudgeError
from pytest_loop.options import unknown_option
from pytest_loop.run_options import RunOptions, run_options
from pytest_loop.show import github, summary
from pytest_loop.show import run as show
from pytest_loop.show.live import Live
from pytest_loop.steps import Settings, Tools
from pytest_loop.store import RunFiles, Store, now, slug
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed import SealedFiles, patterns


@dataclass
class Front:
    """One call of the command line."""

    config: pytest.Config
    values: argparse.Namespace
    options: RunOptions
    made: dict[str, Agent] = field(default_factory=dict)
    project: SealedFiles | None = None
    bytecode: Bytecode | None = None
    is_begun: bool = False
    redact: Redactor = field(default_factory=lambda: redactor(os.environ))

    @property
    def root(self) -> Path:
        """pytest's rootdir; where neither an ini file nor `--rootdir` says what that is, the folder we were called in.

        The values of our options are paths to pytest before it knows them: `--loop-artifact docs/x.md` would move it.
        """
        is_said = self.config.inipath is not None or self.values.rootdir is not None
        return self.config.rootpath if is_said else Path(self.config.invocation_params.dir)

    def main(self) -> int:
        """The exit code: pytest's own words."""
        store = Store(self.root, self.options.folder)
        if name := self.options.command:
            return commands.carry_out(name, self.options, store, self.say, self.ask)
        try:
            with _interruptible():
                state, files = self._resumed(store) if self.options.resume is not None else self._started(store)
                if not state.is_over:
                    state = self._run(state, files, store)
                if self.options.json:
                    whole = outcome.result(state, files.read_history().events, str(files.history))
                    commands.give(whole, self.options.json, self.say)
                return _exit_code(state)
        except KeyboardInterrupt:
            go_on = "the run can go on with pytest --loop-resume"
            self.say(f"interrupted: {go_on if self.is_begun else 'nothing was started'}")
            return int(pytest.ExitCode.INTERRUPTED)

    @property
    def _stream(self) -> TextIO:
        """Where a person reads; standard output may belong to a machine."""
        return sys.stderr if self.options.json == "-" else sys.stdout

    def say(self, line: str) -> None:
        """Tell the person something."""
        print(line, file=self._stream, flush=True)

    def ask(self, question: str) -> bool:
        """A question at a terminal; elsewhere the answer is no."""
        if not (sys.stdin and sys.stdin.isatty()):
            return False
        try:
            return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            return False

    # -- a new run

    def _started(self, store: Store) -> tuple[RunState, RunFiles]:
        new = NewRun(self.config, self.values, self.options, self.root)
        task = new.task()
        self._check()
        alias = store.free_alias(self.options.alias or slug(task))
        files = store.run(alias)
        artifact = new.artifact() or files.artifact
        session = self._session(new.arguments())
        plan = new.plan(session, artifact)
        state = new.state(task, alias, artifact, plan)
        if not state.agents and (found := only_one()):
            state = state.model_copy(update={"agents": (found,)})
        if state.target is Target.WORKSPACE:
            state = self._sealed(new, state, files, session, plan)
        state = machine.beginning(state)
        for line in show.draft_lines(state, _origins(plan)):
            self.say(line)
        for line in unobserved(state.agents, state.limits):
            self.say(line)
        try:
            self._confirm()
        except BaseException:
            if self.project:
                self.project.forget()
            raise
        store.admit(files, is_new=True, force=self.options.force)
        event = Event.of(state, Kind.RUN_STARTED.value, {"state": state.model_dump(mode="json")}, state.created_at)
        state = machine.started(event)
        store.point_at(state)
        files.append([event], state)
        self.is_begun = True
        return state, files

    def _sealed(self, new: NewRun, state: RunState, files: RunFiles, session: ColdSession, plan: Plan) -> RunState:
        """What judges is sealed before the first edit; the files are kept in the run's folder."""
        paths = (one.partition("::")[0] for one in (*plan.items, *(rule.id for rule in state.criteria.rules)))
        self.project = SealedFiles(
            self.root,
            files.folder,
            patterns(filter(None, paths), self.options.seal, self.options.unseal),
            self.options.allow,
        )
        self.say("running the tests twice before the first edit ...")
        session.bytecode = self.bytecode = Bytecode(self.root)
        return new.sealed(state, self.project, session)

    def _check(self) -> None:
        """What can be seen to be wrong before anything is done: agents, and prompts of one's own."""
        if self.options.prompts:
            prompts.check(self.root / self.options.prompts)
        for name, specs in (("--loop-agent", self.options.agents), ("--loop-judge", (self.options.judge,))):
            for spec in filter(None, specs):
                try:
                    self._make(spec)
                except AgentUnavailableError as error:
                    raise pytest.UsageError(f"{name}: {error}") from None

    def _confirm(self) -> None:
        if self.options.yes or self.ask("start?"):
            return
        if sys.stdin and sys.stdin.isatty():
            raise KeyboardInterrupt
        words = " ".join(_quoted(str(word)) for word in self.config.invocation_params.args)
        raise pytest.UsageError(f"nobody is here to confirm this: start it with pytest {words} --loop-yes")

    # -- a run that goes on

    def _resumed(self, store: Store) -> tuple[RunState, RunFiles]:
        files = commands.chosen(store, self.options.alias or self.options.resume)
        try:
            store.admit(files, is_new=False, force=self.options.force)
        except BusyError as error:
            raise StateError(
                f"{error}: watch it with --loop-status={files.alias}, or end it with --loop-stop"
            ) from None
        self.is_begun = True
        process.end_stragglers(process.mark_of(files.folder))  # who outlived a run that was killed
        state, history = files.read()
        files.mend(history)
        for problem in history.damage:
            self.say(f"{files.alias}: {problem}; going on from run.json")
        if state.is_over:
            reopened = self._reopened(state)
            if reopened is None:
                self.say(f"{files.alias} is over: {state.status.value}, {state.stop.reason}")
                self.say(f"go on: {show.go_on(state)}")
                files.release()
                return state, files
            state = machine.step(state, reopened)
            files.append([reopened], state)
        files.forget_stop()
        store.point_at(state)
        return state, files

    def _reopened(self, state: RunState) -> Event | None:
        """The event that opens a run again which a limit has stopped, where that limit was raised."""
        options = self.options
        raised: dict[str, Any] = {}
        if options.is_limit_given and options.max_iterations > state.max_iterations:
            raised["max_iterations"] = options.max_iterations
        if options.max_seconds and options.max_seconds > (state.max_completed_phase_seconds or 0):
            raised["max_completed_phase_seconds"] = options.max_seconds
        if self.values.loop_budget and self.values.loop_budget > (state.limits.usd or 0):
            raised["usd"] = self.values.loop_budget
        if self.values.loop_max_tokens and self.values.loop_max_tokens > (state.limits.tokens or 0):
            raised["tokens"] = self.values.loop_max_tokens
        fits = machine.REOPENED_BY.get(state.stop.reason, ())
        confirmed = state.stop.reason == "unconfirmed" and options.confirmed
        if not confirmed and not any(name in fits for name in raised):
            return None
        return Event.of(state, Kind.LIMITS_RAISED.value, raised, now())

    # -- running

    def _run(self, state: RunState, files: RunFiles, store: Store) -> RunState:
        agents: list[Agent] = []
        judge: Agent | None = None
        try:
            agents = [self._agent(spec) for spec in self.values.loop_agent or state.agents or self.options.agents]
            judge = self._agent(self.options.judge or state.judge) if self.options.judge or state.judge else None
            driver = self._driver(state, files, store, agents, judge or (agents[0] if agents else None))
            with process.marking(process.mark_of(files.folder)), self._muted():
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
            self.bytecode = Bytecode(self.root)
        live = Live(self._stream, width=shutil.get_terminal_size().columns)
        session = self._session(state.arguments)
        session.heard = RedactedStream(self._heard, self.redact)
        session.bytecode = self.bytecode
        session.wanted = lambda: files.stop_asked() is None
        settings = Settings(
            root=self.root,
            plan_by_agent=options.plan == "agent",
            prompts=self.root / options.prompts if options.prompts else None,
            critique_tokens=options.critique_tokens,
            timeout=options.agent_timeout,
            silence=options.agent_silence,
            confirmed=options.confirmed,
            nonce=secrets.token_hex(4),
            redact=self.redact,
        )
        discreet = DiscreetSession(session, self.redact)
        tools = Tools(
            settings,
            files,
            artifact,
            discreet,
            agents,
            judge,
            self.config.hook,
            live,
            self.project,
            self._checkpoints(state),
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
        return Recorded(made, self.config.invocation_params.dir / self.options.record)

    def _make(self, spec: str) -> Agent:
        if spec not in self.made:
            own: Agent | None = self.config.hook.pytest_loop_make_agent(spec=spec)
            self.made[spec] = Discreet(own or make(spec, self.root, declared(self.root)), self.redact)
        return self.made[spec]

    def _session(self, arguments: tuple[str, ...]) -> ColdSession:
        return ColdSession(
            arguments,
            Path(self.config.invocation_params.dir),
            self.options.session_timeout,
            dict(os.environ),
            lambda _data: None,
        )

    def _listen(self, event: Event, state: RunState) -> None:
        for line in show.event_lines(event, state):
            self.say(line)

    def _heard(self, data: bytes) -> None:
        self._stream.write(data.decode("utf-8", "replace"))
        self._stream.flush()


def main(config: pytest.Config, values: argparse.Namespace) -> int:
    """Carry out what the options ask for; bad input is a usage error, never a traceback."""
    if config.pluginmanager.has_plugin("loop"):
        raise pytest.UsageError(
            "the plugin pytest-loop (a test repeater) is active and makes sessions run nothing: use -p no:loop"
        )
    if unknown := unknown_option([str(word) for word in config.invocation_params.args]):
        raise pytest.UsageError(unknown)
    try:
        return Front(config, values, run_options(config, values)).main()
    except NothingToJudgeError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    except LoopError as error:
        raise pytest.UsageError(str(error)) from None


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Other ways to end a process are an interrupt too: the run stays whole, and its children end with it.

    Who asks twice is not heard a second time: what is left to do then is short, and must be done. A signal that was
    ignored stays so: `nohup` means it.
    """
    known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {}
    with contextlib.suppress(ValueError):  # only the main thread hears signals
        before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        _restore(before)
        raise
    _restore(before)


def _restore(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _exit_code(state: RunState) -> int:
    return int(pytest.ExitCode.OK if state.status is Status.COMPLETED else pytest.ExitCode.TESTS_FAILED)


def _origins(plan: Plan) -> dict[str, str]:
    """Where each rule came from."""
    return {f"{criteria.source}::{rule.id}": criteria.source for criteria in plan.criteria for rule in criteria.rules}


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\"'\"'") + "'"
