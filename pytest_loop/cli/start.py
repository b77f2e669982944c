"""From options to a run: the task, the draft, the confirmation, or a run that goes on."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TextIO

import pytest

from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.agents.installed_clients import choose_default_agent, list_unobservable_limits
from pytest_loop.cli import background, commands, report, runs
from pytest_loop.cli.draft import NewRun, NothingToJudgeError, task_of
from pytest_loop.cli.readiness import Reading, reading
from pytest_loop.cli.resume import resumed
from pytest_loop.cli.task import Understood, check_measurable, heard, inferred, tests_of
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.judging.draft import TESTS_SOURCE, is_test_rule
from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Plan
from pytest_loop.core.model.run_state import RunState, State
from pytest_loop.core.model.vocabulary import Status, Target
from pytest_loop.core.reporting import outcome
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import LoopError
from pytest_loop.inference.clarity import Confirm
from pytest_loop.inference.task_phrases import Route, parse_task
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.run import worktree
from pytest_loop.run.context import Tools
from pytest_loop.run.questions import is_at_terminal, line
from pytest_loop.run.runner import Running
from pytest_loop.run.steps import RunSteps, Steps
from pytest_loop.session.bytecode import Bytecode
from pytest_loop.session.runner import ChildSession
from pytest_loop.settings.command_line import find_unknown_flag
from pytest_loop.settings.settings import Settings, find_root, read_settings
from pytest_loop.show import run as show
from pytest_loop.show import workload
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.run_names import make_alias
from pytest_loop.workloads.experiment_steps import ExperimentSteps
from pytest_loop.workloads.new_experiment import NewExperiment
from pytest_loop.workspace.seal import BUILD_FILES, build_seal_patterns
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class Front:
    """One call of the command line."""

    config: pytest.Config
    values: argparse.Namespace
    settings: Settings
    task: str = ""
    is_begun: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_begun = self.settings.commands.resume is not None

    @property
    def root(self) -> Path:
        return find_root(self.config, self.values)

    def main(self) -> int:
        """The exit code: pytest's own words."""
        store = Store(self.root, self.settings.start.dir)
        if (name := self.settings.command) in ("attach", "pause"):
            return background.carry_out(name, self.settings, store, self.say, self._stream)
        if name:
            return commands.carry_out(name, self.settings, store, self.say, self.ask)
        report.check(self.settings)
        try:
            with interrupt_on_signals():
                if (code := self._elsewhere(store).carried_out(self.root)) is not None:
                    return code
                state, files = self._resumed(store) if self.is_begun else self._started(store)
                if self.is_apart and not state.is_over:
                    return self._elsewhere(store).detached(files)
                if not state.is_over:
                    state = self.running.run(state, files, store)
                worktree.hand_over(self.root, files, state, self.say)
                if self.settings.workload.debrief:
                    commands.debriefed(files, self.settings.workload.debrief, self.say)
                if self.settings.output.json:
                    whole = outcome.build_result(state, files.read_history().events, str(files.history))
                    runs.give(whole, self.settings.output.json, self.say)
                if self.settings.output.report:
                    report.write(self.settings, state, files.read_history().events, self.say)
                return _exit_code(state)
        except KeyboardInterrupt:
            go_on = "the run can go on with pytest --loop-resume"
            self.say(f"interrupted: {go_on if self.is_begun else 'nothing was started'}")
            return int(pytest.ExitCode.INTERRUPTED)
        finally:
            self.running.close()

    def _elsewhere(self, store: Store) -> worktree.Elsewhere:
        """Other processes for the same words."""
        place = self.config.invocation_params
        return worktree.Elsewhere(store, self.settings, [str(word) for word in place.args], Path(place.dir), self.say)

    @property
    def is_apart(self) -> bool:
        """Whether the run works in the background: the person says so in an option, or in the words of a new task."""
        return self.settings.start.detach or (bool(self.task) and parse_task(self.task).route is Route.BACKGROUND)

    @cached_property
    def running(self) -> Running:
        """Who carries out what is decided here."""
        folder = Path(self.config.invocation_params.dir)
        named = self.values.loop_agent or ()
        running = Running(self.root, folder, self.settings, named, self.config.hook, self._stream, self.say)
        running.make_steps = _choose_steps
        return running

    @property
    def _stream(self) -> TextIO:
        """Where a person reads; standard output may belong to a machine."""
        return sys.stderr if self.settings.output.json == "-" else sys.stdout

    def say(self, line: str) -> None:
        """Tell the person something."""
        print(line, file=self._stream, flush=True)

    def ask(self, question: str) -> bool:
        """A question at a terminal; elsewhere the answer is no."""
        said = line(f"{question} [y/N] ", self._stream) if is_at_terminal() else None
        return said is not None and said.lower() in ("y", "yes")

    # -- a new run

    def _started(self, store: Store) -> tuple[RunState, RunFiles]:
        if self.settings.workload.manifest:
            return self._begun_experiment(store)
        self.task = task = task_of(self.config, self.settings.start.task)
        self.running.check()
        new = NewRun(self.config, self.values, self.settings, self.root, self._heard(task))
        alias = store.make_unique_alias(self.settings.start.alias or make_alias(task))
        files = store.get_run(alias)
        artifact = new.artifact() or files.artifact
        new, session, plan = self._planned(new, files, artifact)
        state = new.state(alias, artifact, plan)
        if not state.setup.agents and (
            found := choose_default_agent(are_files_edited=state.setup.target is Target.WORKSPACE)
        ):
            state = state.replace(agents=(found,))
        self.running.check_candidates(state)
        if state.setup.target is Target.WORKSPACE:
            state = self._sealed(new, state, files, session, plan)
        state = RUN_MACHINE.begin(state)
        draft = reading(
            state, self.settings.workspace.allow, new.understood.context, says_when=new.understood.says_when
        )
        state = state.replace(draft=draft.manner)
        lines = self._draft(new, state, plan, draft)
        return self._begun(store, files, state, lines, lambda state: RunStarted(state=state), draft.question)

    def _begun_experiment(self, store: Store) -> tuple[RunState, RunFiles]:
        """A workload is tuned instead: its cases judge, and what may be edited is named by its manifest."""
        new = NewExperiment(self.config, self.settings, self.root, tuple(self.values.file_or_dir))
        self.running.check()
        files = store.get_run(store.make_unique_alias(self.settings.start.alias or make_alias(new.name)))
        session = self.running.session(new.arguments(), time.time())
        agents = self.settings.agents.agent or tuple(filter(None, (choose_default_agent(are_files_edited=False),)))
        experiment, self.running.project = new.begin(files, session, agents)
        state = EXPERIMENT_MACHINE.begin(experiment)
        self.running.bytecode = Bytecode(self.root, is_new=True)
        approved = "--loop-yes" if self.settings.start.yes else "asked"
        lines = workload.draft_lines(state)
        return self._begun(store, files, state, lines, lambda state: new.make_start(state, approved))

    def _begun(
        self,
        store: Store,
        files: RunFiles,
        state: State,
        draft: Iterable[str],
        make_start: Callable[[State], RunStarted],
        question: str = "start?",
    ) -> tuple[State, RunFiles]:
        """Shown, confirmed, and written down."""
        try:
            for told in chain(draft, list_unobservable_limits(state.setup.agents, state.setup.limits)):
                self.say(told)
            if self.is_apart:
                self.say("works       in the background")
            confirmed = state.setup.draft.model_copy(update={"confirmed_by": self._confirm(question)})
            state = state.replace(draft=confirmed)
        except BaseException:
            if self.running.project:
                self.running.project.discard()
            files.remove_rules()
            raise
        store.admit(files, is_new=True, force=self.settings.start.force)
        worktree.refuse_overlap(store, files, state)
        event = Event.create(state, make_start(state), state.created_at)
        store.set_current_run(state)
        files.append([event], state)
        self.is_begun = True
        return state, files

    def _heard(self, task: str) -> Understood:
        agents = self.settings.agents.agent or (choose_default_agent(are_files_edited=True),)
        can_judge = bool(self.settings.agents.judge) or any(
            one.partition(":")[0] not in ("", BUILTIN) for one in agents
        )
        return heard(task, self.root, can_judge=can_judge)

    def _planned(self, new: NewRun, files: RunFiles, artifact: Path) -> tuple[NewRun, ChildSession, Plan]:
        """What judges: what the person named, or the rules of the project and what can be inferred."""
        session = self.running.session(new.arguments(), time.time())
        nothing: NothingToJudgeError | None = None
        plan = Plan()
        try:
            plan = new.plan(session, artifact)
        except NothingToJudgeError as error:
            nothing = error
        found = new.understood
        are_tests_alone = all(one.source == TESTS_SOURCE for one in plan.criteria)
        if new.is_judge_named:
            found = found.without_rules()
            if are_tests_alone and not nothing and not self.settings.workspace.artifact:
                check_measurable(found, self.root)
        elif are_tests_alone and not found.has_criteria:
            found = inferred(found, self.root)
        new = replace(new, understood=found)
        if found.rules:
            files.save_rules(found.rules)
            new = replace(new, kept=files.rules)
            session = self.running.session(new.arguments(), time.time())
            plan = new.plan(session, artifact)
        elif nothing:
            raise nothing
        return new, session, plan

    def _draft(self, new: NewRun, state: RunState, plan: Plan, draft: Reading) -> Iterator[str]:
        own = new.understood.origins
        origins = _origins(plan) | {rule.key: own[rule.id] for rule in state.criteria.rules if rule.id in own}
        yield from show.draft_lines(state, origins)
        yield from draft.lines()
        yield from new.understood.notes()

    def _sealed(self, new: NewRun, state: RunState, files: RunFiles, session: ChildSession, plan: Plan) -> RunState:
        """What judges is sealed before the first edit; the files are kept in the run's folder.

        A command judges by more than it names: by tests of any language, and by what tells tools how to run them.
        """
        rules = state.criteria.rules
        paths = (one.partition("::")[0] for one in (*plan.items, *(rule.id for rule in rules)))
        has_commands = any(rule.proof.is_executed and not is_test_rule(rule) for rule in rules)
        self.running.project = SealedFiles(
            self.root,
            files.folder,
            build_seal_patterns(
                filter(None, (*paths, *plan.judges, *(tests_of(self.root) if has_commands else ()))),
                (*(BUILD_FILES if has_commands else ()), *self.settings.workspace.seal),
                self.settings.workspace.unseal,
                are_tests_added=new.understood.adds_tests,
            ),
            self.settings.workspace.allow,
        )
        self.say("running the tests twice before the first edit ...")
        session.bytecode = self.running.bytecode = Bytecode(self.root, is_new=True)
        return new.sealed(state, self.running.project, session)

    def _resumed(self, store: Store) -> tuple[RunState, RunFiles]:
        return resumed(store, self.settings, self.values, self.say)

    def _confirm(self, question: str) -> str:
        """Who has confirmed the draft: without that, nothing begins."""
        if self.settings.start.yes:
            return "--loop-yes"
        if self.settings.start.confirm == Confirm.NEVER.value:
            return "loop_confirm"
        if self.ask(question):
            return "terminal"
        if is_at_terminal():
            raise KeyboardInterrupt
        words = " ".join(_quoted(str(word)) for word in self.config.invocation_params.args)
        raise pytest.UsageError(f"nobody is here to confirm this: start it with pytest {words} --loop-yes")


def main(config: pytest.Config, values: argparse.Namespace) -> int:
    """Carry out what the options ask for; bad input is a usage error, never a traceback."""
    if config.pluginmanager.has_plugin("loop"):
        raise pytest.UsageError(
            "the plugin pytest-loop (a test repeater) is active and makes sessions run nothing: use -p no:loop"
        )
    if unknown := find_unknown_flag([str(word) for word in config.invocation_params.args]):
        raise pytest.UsageError(unknown)
    try:
        return Front(config, values, read_settings(config, values)).main()
    except NothingToJudgeError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    except LoopError as error:
        raise pytest.UsageError(str(error)) from None


def _choose_steps(state: RunState, tools: Tools) -> Steps:
    """Return the steps of a run or of an experiment."""
    return ExperimentSteps(tools.ask) if isinstance(state, ExperimentState) else RunSteps()


def _exit_code(state: RunState) -> int:
    return int(pytest.ExitCode.OK if state.status is Status.COMPLETED else pytest.ExitCode.TESTS_FAILED)


def _origins(plan: Plan) -> dict[str, str]:
    """Where each rule came from."""
    return {f"{criteria.source}::{rule.id}": criteria.source for criteria in plan.criteria for rule in criteria.rules}


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\"'\"'") + "'"
