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
    AcceptanceTestsPrepared,
    EndPayload,
    LimitsRaised,
    Payload,
    PhaseError,
    StepPayload,
    Stopped,
    StopRequested,
)
from pytest_loop.core.machine.run_machine import Command, Machine
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.run_state import State
from pytest_loop.core.model.vocabulary import Kind, Reason, name_user_stop
from pytest_loop.core.reporting.decision import decide
from pytest_loop.errors import StateError
from pytest_loop.run.context import RunContext
from pytest_loop.run.ending import add_diff
from pytest_loop.run.step_context import StepContext, StepRecord
from pytest_loop.run.steps import Steps
from pytest_loop.session.runner import SessionError, SessionStoppedError
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store

# Payloads of a step that did not end as it should.
_INTERRUPTIONS = (PhaseError, StopRequested)


@dataclass
class Driver(Generic[State]):
    """Drive one run or experiment from its current state to its end.

    `rebuild_context` returns a context whose fence and session fit the seal of a state; the driver calls this
    function after new tests were sealed. `is_cancelled` stops steps that run at the same time.
    """

    state: State
    machine: Machine[State]
    steps: Steps
    store: Store
    context: RunContext
    listen: Callable[[Event, State], None]
    rebuild_context: Callable[[State], RunContext] | None = None
    pending: list[Event] = field(default_factory=list)
    is_cancelled: bool = False

    def run(self) -> State:
        """Drive the run until it is over, and return its last state."""
        gc.freeze()  # thousands of rules live as long as the run: scanning them again and again is slow
        try:
            self._adopt_answer()
            while commands := self.machine.list_next_commands(self.state):
                if any(self.steps.is_slow(command) for command in commands):
                    self.flush()
                for payload in self._execute_all(commands):
                    self._record(payload)
                    if self.rebuild_context and isinstance(payload, AcceptanceTestsPrepared):
                        self.flush()
                        self.context = self.rebuild_context(self.state)
            self.flush()
            return self.state
        finally:
            gc.unfreeze()

    def flush(self) -> None:
        """Write pending events and the state, and record that this run is the project's current one."""
        if self.pending:
            self.context.files.append(self.pending, self.state)
            self.pending.clear()
            self.store.update_current_run(self.state)

    def _record(self, payload: Payload) -> None:
        event = Event.create(self.state, payload, read_clock())
        self.state = self.machine.apply(self.state, event)
        self.pending.append(event)
        self.listen(event, self.state)
        self.context.hook.pytest_loop_event(event=event, state=self.state)

    def _execute_all(self, commands: tuple[Command, ...]) -> list[Payload]:
        """Return the payload of a request by another process, a plugin or the user, else execute commands."""
        self._raise_on_pause()
        first, files = commands[0], self.context.files
        is_end = first.kind in (Kind.STOPPED, Kind.FAILED)
        reason = None if is_end or self.state.signals.stop_request else files.requests.read_stop_reason()
        if reason is not None:
            files.requests.clear()
            return [StopRequested(reason=reason)]
        if not is_end and (limits := files.requests.take_limits()):
            return [LimitsRaised.model_validate({**limits, "is_exact": True})]
        if first.kind is Kind.CRITIQUE_DONE and (word := self.context.hook.pytest_loop_should_stop(state=self.state)):
            end = Stopped(reason=name_user_stop(str(word)), decision=decide(self.state, Reason.USER_STOP))
            return [self._complete_end(end)]
        if (first.kind is Kind.CRITIQUE_DONE or first.is_success) and (answer := self._ask_user(first)):
            return [answer]
        return self._execute_steps(commands)

    def _ask_user(self, command: Command) -> Payload | None:
        """Write events, then ask the user to review a success or to allow an iteration; return None to continue."""
        gates = self.context.gates
        if gates.is_terminal:
            self.flush()
        if command.is_success:
            review = gates.review(self.state)
            return self.steps.add_decision(review, self.state) if review else None
        is_allowed = gates.allow_iteration(self.state)
        if gates.is_terminal:
            self.context.project.accept_current()  # what changed while the question waited is an edit of the user
        if is_allowed:
            return None
        if is_allowed is None and self.context.files.requests.read_stop_reason() is None:
            raise KeyboardInterrupt
        return self._make_stop_request()

    def _make_stop_request(self) -> StopRequested:
        return StopRequested(reason=self.context.files.requests.read_stop_reason() or Reason.USER_STOP.value)

    def _execute_steps(self, commands: tuple[Command, ...]) -> list[Payload]:
        """Execute commands; revert sealed files first of all if a step raises an error or is interrupted."""
        if commands[0].step is not None:
            self.context.project.begin_work()
        try:
            payloads = [self._execute(commands[0])] if len(commands) == 1 else self._execute_side_by_side(commands)
        except BaseException:
            self._revert_sealed_files()
            raise
        return [
            payload.model_copy(update={"findings": self._revert_sealed_files()})
            if isinstance(payload, _INTERRUPTIONS)
            else payload
            for payload in payloads
        ]

    def _revert_sealed_files(self) -> tuple[SealFinding, ...]:
        """Revert sealed files after an interrupted step; print and return what was reverted."""
        write = self.context.live.write
        try:
            findings = tuple(self.context.project.enforce_seal())
        except StateError as error:  # the project is gone: keep the reason why the step ended
            write(str(error))
            return ()
        for finding in findings:
            write(f"  {finding.path}: {finding.detail}")
        return findings

    def _execute_side_by_side(self, commands: tuple[Command, ...]) -> list[Payload]:
        """Execute two steps at once, and count their time once; if one is interrupted, the other is cancelled."""
        started = time.monotonic()
        with ThreadPoolExecutor(len(commands)) as pool:
            try:
                futures = [pool.submit(self._execute, command) for command in commands]
                payloads = [future.result() for future in futures]
            except BaseException:
                self.is_cancelled = True
                raise
        last = len(payloads) - 1
        return [
            payload.model_copy(update={"seconds": _measure_since(started) if index == last else 0.0})
            for index, payload in enumerate(payloads)
        ]

    def _execute(self, command: Command) -> Payload:
        """Execute a command; return an error of a step as a payload, so that the machine decides how to continue."""
        if command.step is None:
            return self._complete_end(self.steps.make_payload(command, self.state))
        started = time.monotonic()
        step_context = StepContext(self.context, self.state, self._should_continue, StepRecord())
        payload: StepPayload
        try:
            payload = self.steps.execute(command, step_context)
        except (StopRequestedError, SessionStoppedError):
            self._raise_on_pause()
            return self._make_stop_request()
        except (AgentError, SessionError) as error:
            is_final = isinstance(error, AgentUnavailableError)
            payload = PhaseError(step=command.step.value, reason=str(error), final=is_final)
        payload = payload.model_copy(update={**step_context.record.fields, "seconds": _measure_since(started)})
        return self.steps.add_decision(payload, self.state)

    def _complete_end(self, payload: Payload) -> Payload:
        """Add the diff of the run to the payload of an end; return any other payload unchanged."""
        return add_diff(payload, self.state, self.context.files) if isinstance(payload, EndPayload) else payload

    def _should_continue(self) -> bool:
        self.context.live.refresh()
        return not self.is_cancelled and self.context.files.requests.can_continue

    def _raise_on_pause(self) -> None:
        """Raise `KeyboardInterrupt` if a pause was requested: like an interrupt, it lets the run be resumed."""
        if self.context.files.requests.has_pause:
            self.context.files.requests.clear()
            raise KeyboardInterrupt

    def _adopt_answer(self) -> None:
        """After a crash, record an answer that is complete on disk instead of asking for it again."""
        before = self.state.progress.artifact_hash
        for command in self.machine.list_next_commands(self.state):
            answer = self.context.files.recover_answer(command.kind, self.context.artifact.path, before)
            if answer is not None:
                self._record(answer.model_copy(update={"seconds": 0.0}))


def _measure_since(started: float) -> float:
    return round(max(0.0, time.monotonic() - started), 3)
