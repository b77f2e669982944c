"""The loop of a run: carries out what the machine says must happen, and writes down what came of it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pytest_loop.agents.protocol import AgentError, AgentUnavailableError, StopRequestedError
from pytest_loop.core.machine import run_machine
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.machine.stop_reasons import stop_reason
from pytest_loop.core.model.run_state import Event, Kind, Reason, RunState, Step
from pytest_loop.core.model.vocabulary import own_word
from pytest_loop.core.reporting import outcome
from pytest_loop.run.context import Tools
from pytest_loop.run.steps import Payload, Work
from pytest_loop.session.runner import SessionError, SessionStoppedError
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store
from pytest_loop.workloads.experiment_notes import last_words, note

Happening = tuple[Kind, Payload]
_SLOW = (Step.PRODUCE, Step.PREPARE, Step.EVALUATE, Step.REFINE)


@dataclass
class Driver:
    """One run from where it stands to its end."""

    state: RunState
    store: Store
    tools: Tools
    listen: Callable[[Event, RunState], None]
    pending: list[Event] = field(default_factory=list)
    is_leaving: bool = False

    def run(self) -> RunState:
        """Until nothing is left to do."""
        gc.freeze()  # what exists now stays: looking for garbage among thousands of rules would take its time
        try:
            return self._run()
        finally:
            gc.unfreeze()

    def _run(self) -> RunState:
        self._adopt()
        while todo := run_machine.commands(self.state):
            if self.state.notebook is not None or any(one.step in _SLOW for one in todo):
                self.flush()  # a measurement is not made twice because of a crash while somebody composes
            for kind, payload in self._carry_out(todo):
                self._happened(kind, payload)
        self.flush()
        self.store.clear_current_run(self.state)
        return self.state

    def flush(self) -> None:
        """Write down what has happened: the events, and then the state."""
        if self.pending:
            self.tools.files.append(self.pending, self.state)
            self.pending.clear()

    def _event(self, kind: Kind, payload: Payload) -> Event:
        return Event.of(self.state, kind.value, payload, read_clock())

    def _happened(self, kind: Kind, payload: Payload) -> None:
        event = self._event(kind, payload)
        self.state = run_machine.step(self.state, event)
        self.pending.append(event)
        self.listen(event, self.state)
        self.tools.hook.pytest_loop_event(event=event, state=self.state)

    # -- carrying out

    def _carry_out(self, todo: tuple[Command, ...]) -> list[Happening]:
        self._pause()
        reason = self.tools.files.read_stop_request()
        if reason is not None and not self.state.stop_asked and todo[0].kind not in (Kind.STOPPED, Kind.FAILED):
            self.tools.files.clear_requests()
            return [(Kind.STOP_REQUESTED, {"reason": reason})]
        if todo[0].kind is Kind.CRITIQUE_DONE and (own := self.tools.hook.pytest_loop_should_stop(state=self.state)):
            word = own_word(str(own))
            return [(Kind.STOPPED, {"reason": word, "decision": outcome.decision(self.state, Reason.USER_STOP)})]
        if (todo[0].kind is Kind.CRITIQUE_DONE or todo[0].is_success) and (said := self._answered(todo[0])):
            return [said]
        return [self._one(todo[0])] if len(todo) == 1 or self._is_alone else self._both(todo)

    def _answered(self, command: Command) -> Happening | None:
        """What a person says where the run turns; all that has happened is written down while they think."""
        gates = self.tools.gates
        if gates.is_terminal:
            self.flush()
        if command.is_success:
            said = gates.review(self.state)
            return (Kind.REVIEW_DONE, self._decisive(Kind.REVIEW_DONE, said)) if said else None
        goes_on = gates.lets_go_on(self.state)
        if goes_on:
            return None
        if goes_on is None and self.tools.files.read_stop_request() is None:
            raise KeyboardInterrupt
        return Kind.STOP_REQUESTED, {"reason": self.tools.files.read_stop_request() or Reason.USER_STOP.value}

    def _decisive(self, kind: Kind, payload: Payload) -> Payload:
        """With what follows from it."""
        after = run_machine.step(self.state, self._event(kind, payload))
        return {**payload, "decision": outcome.decision(after, stop_reason(after))}

    @property
    def _is_alone(self) -> bool:
        """Whether the one who writes also makes the checks, and can do only one thing at a time."""
        agents = self.tools.agents
        return not agents or any(one is self.tools.judge and one.is_serial for one in agents)

    def _both(self, todo: tuple[Command, ...]) -> list[Happening]:
        """Two steps side by side; where one is interrupted, nobody waits for the other."""
        started = time.monotonic()
        with ThreadPoolExecutor(len(todo)) as pool:
            try:
                running = [pool.submit(self._one, command) for command in todo]
                done = [one.result() for one in running]
            except BaseException:
                self.is_leaving = True
                raise
        for _, payload in done:
            payload["seconds"] = 0.0  # the steps ran at the same time, which is counted once
        done[-1][1]["seconds"] = _since(started)
        return done

    def _one(self, command: Command) -> Happening:
        """One step; what goes wrong in it is a value, and the machine decides what follows."""
        if command.step is None:
            return command.kind, self._decided(command)
        started = time.monotonic()
        kind = command.kind
        work = Work(self.tools, self.state, self._goes_on)
        try:
            payload = work.carry_out(kind)
        except (StopRequestedError, SessionStoppedError):
            self._pause()
            return Kind.STOP_REQUESTED, {"reason": self.tools.files.read_stop_request() or Reason.USER_STOP.value}
        except (AgentError, SessionError) as error:
            kind = Kind.PHASE_ERROR
            final = isinstance(error, AgentUnavailableError)
            payload = {"step": command.step.value, "reason": str(error), "final": final}
        payload |= {**work.told, "seconds": _since(started)}
        if kind is Kind.EVALUATION_DONE and self.state.notebook is None:
            payload = self._decisive(kind, payload)
        return kind, payload

    def _decided(self, command: Command) -> Payload:
        """What the machine has decided needs no work, only a note, or the reason for an end."""
        book = self.state.notebook
        if command.reason is None:
            is_note = book is not None and command.kind is not Kind.ITERATION_ADVANCED
            return note(command.kind, self.state, book, self.tools.ask) if book and is_note else {}
        reason = command.reason
        payload: Payload = {"reason": reason.value, "decision": outcome.decision(self.state, reason)}
        if reason is Reason.BUDGET_EXCEEDED:
            payload |= outcome.budget_report(self.state)
        return payload | (last_words(self.state, book, reason.value) if book else {})

    def _goes_on(self) -> bool:
        self.tools.live.tick()
        return not self.is_leaving and self.tools.files.can_continue

    def _pause(self) -> None:
        """Leave where we stand, as after an interrupt, where somebody has asked for that."""
        if self.tools.files.is_pause_requested:
            self.tools.files.clear_requests()
            raise KeyboardInterrupt

    def _adopt(self) -> None:
        """After a crash: an answer that was written down whole is not asked for again."""
        before = self.state.artifact_hash
        for command in run_machine.commands(self.state):
            if command.kind not in (Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE):
                continue
            payload = self.tools.files.recover_answer(command.kind, self.tools.artifact.path, before)
            if payload is not None:
                earlier = {"previous_artifact_hash": before} if command.kind is Kind.REFINEMENT_DONE else {}
                self._happened(command.kind, {**earlier, **payload, "seconds": 0.0})


def _since(started: float) -> float:
    return round(max(0.0, time.monotonic() - started), 3)
