"""The loop of a run: execute what the machine commands, and record what happened."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic

from pytest_loop.agents.protocol import AgentError, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    Payload,
    PhaseError,
    StepPayload,
    Stopped,
    StopRequested,
)
from pytest_loop.core.machine.run_machine import Command, Machine
from pytest_loop.core.model.run_state import State
from pytest_loop.core.model.vocabulary import Kind, Reason, name_user_stop
from pytest_loop.core.reporting.outcome import decide
from pytest_loop.run.context import RunContext
from pytest_loop.run.step_context import StepContext, StepCosts
from pytest_loop.run.steps import Steps
from pytest_loop.session.runner import SessionError, SessionStoppedError
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store


@dataclass
class Driver(Generic[State]):
    """One run from where it stands to its end; machine and steps are those of a run or of an experiment."""

    state: State
    machine: Machine[State]
    steps: Steps
    store: Store
    context: RunContext
    listen: Callable[[Event, State], None]
    pending: list[Event] = field(default_factory=list)
    is_leaving: bool = False

    def run(self) -> State:
        """Drive the run until it is over, and return its last state."""
        gc.freeze()  # thousands of rules stay: collecting them again and again would be slow
        try:
            self._adopt_answer()
            while commands := self.machine.next_commands(self.state):
                if any(self.steps.is_slow(command) for command in commands):
                    self.flush()
                for payload in self._execute_all(commands):
                    self._record(payload)
            self.flush()
            self.store.clear_current_run(self.state)
            return self.state
        finally:
            gc.unfreeze()

    def flush(self) -> None:
        """Write pending events, and then the state."""
        if self.pending:
            self.context.files.append(self.pending, self.state)
            self.pending.clear()

    def _record(self, payload: Payload) -> None:
        event = Event.create(self.state, payload, read_clock())
        self.state = self.machine.apply(self.state, event)
        self.pending.append(event)
        self.listen(event, self.state)
        self.context.hook.pytest_loop_event(event=event, state=self.state)

    def _execute_all(self, commands: tuple[Command, ...]) -> list[Payload]:
        self._raise_on_pause()
        first = commands[0]
        reason = self.context.files.read_stop_request()
        if reason is not None and not self.state.signals.stop_request and first.kind not in (Kind.STOPPED, Kind.FAILED):
            self.context.files.clear_requests()
            return [StopRequested(reason=reason)]
        if first.kind is Kind.CRITIQUE_DONE and (word := self.context.hook.pytest_loop_should_stop(state=self.state)):
            return [Stopped(reason=name_user_stop(str(word)), decision=decide(self.state, Reason.USER_STOP))]
        if (first.kind is Kind.CRITIQUE_DONE or first.is_success) and (answer := self._ask_person(first)):
            return [answer]
        is_single = len(commands) == 1 or self._is_agent_shared
        return [self._execute(first)] if is_single else self._execute_side_by_side(commands)

    def _ask_person(self, command: Command) -> Payload | None:
        """Return what a person says at a turning point; events are on disk while they think."""
        gates = self.context.gates
        if gates.is_terminal:
            self.flush()
        if command.is_success:
            review = gates.review(self.state)
            return self.steps.conclude(review, self.state) if review else None
        goes_on = gates.allow_iteration(self.state)
        if goes_on:
            return None
        if goes_on is None and self.context.files.read_stop_request() is None:
            raise KeyboardInterrupt
        return self._make_stop_request()

    def _make_stop_request(self) -> StopRequested:
        return StopRequested(reason=self.context.files.read_stop_request() or Reason.USER_STOP.value)

    @property
    def _is_agent_shared(self) -> bool:
        """Whether the agent that writes also makes the checks, and can do only one thing at a time."""
        agents = self.context.agents
        return not agents or any(agent is self.context.judge and agent.is_serial for agent in agents)

    def _execute_side_by_side(self, commands: tuple[Command, ...]) -> list[Payload]:
        """Execute two steps at once, and count their time once; if one is interrupted, the other is cancelled."""
        started = time.monotonic()
        with ThreadPoolExecutor(len(commands)) as pool:
            try:
                futures = [pool.submit(self._execute, command) for command in commands]
                payloads = [future.result() for future in futures]
            except BaseException:
                self.is_leaving = True
                raise
        last = len(payloads) - 1
        return [
            payload.model_copy(update={"seconds": _measure_since(started) if index == last else 0.0})
            for index, payload in enumerate(payloads)
        ]

    def _execute(self, command: Command) -> Payload:
        """Execute a command; an error of a step is a value, and the machine decides what follows."""
        if command.step is None:
            return self.steps.record(command, self.state)
        started = time.monotonic()
        step_context = StepContext(self.context, self.state, self._should_continue, StepCosts())
        payload: StepPayload
        try:
            payload = self.steps.execute(command, step_context)
        except (StopRequestedError, SessionStoppedError):
            self._raise_on_pause()
            return self._make_stop_request()
        except (AgentError, SessionError) as error:
            is_final = isinstance(error, AgentUnavailableError)
            payload = PhaseError(step=command.step.value, reason=str(error), final=is_final)
        payload = payload.model_copy(update={**step_context.costs.fields, "seconds": _measure_since(started)})
        return self.steps.conclude(payload, self.state)

    def _should_continue(self) -> bool:
        self.context.live.refresh()
        return not self.is_leaving and self.context.files.can_continue

    def _raise_on_pause(self) -> None:
        """Leave as after an interrupt if a pause was requested."""
        if self.context.files.is_pause_requested:
            self.context.files.clear_requests()
            raise KeyboardInterrupt

    def _adopt_answer(self) -> None:
        """After a crash, record an answer that is complete on disk instead of asking for it again."""
        before = self.state.progress.artifact_hash
        for command in self.machine.next_commands(self.state):
            answer = self.context.files.recover_answer(command.kind, self.context.artifact.path, before)
            if answer is not None:
                self._record(answer.model_copy(update={"seconds": 0.0}))


def _measure_since(started: float) -> float:
    return round(max(0.0, time.monotonic() - started), 3)
