"""The driver: it executes the machine's commands, records events, and obeys requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import ArtifactCreated, PlanCreated, RunStarted
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.inference.gates import Confirm
from pytest_loop.run.driver import Driver
from pytest_loop.run.questions import Gates
from pytest_loop.run.steps import RunSteps
from tests.run.parts import SmallRun, make_agent, make_rules, make_run


def start(run: SmallRun) -> None:
    """Write the first event, as the start of a run does."""
    run.files.acquire()
    run.files.append([Event.create(run.state, RunStarted(state=run.state), "2026-01-02T03:04:05.678Z")], run.state)
    run.store.set_current_run(run.state)


def make_driver(run: SmallRun, listen: Callable[[Event, RunState], None] = lambda _event, _state: None) -> Driver[Any]:
    return Driver(run.state, RUN_MACHINE, RunSteps(), run.store, run.context, listen)


def drive(run: SmallRun) -> RunState:
    start(run)
    try:
        state: RunState = make_driver(run).run()
    finally:
        run.files.release()
    return state


def list_kinds(run: SmallRun) -> list[str]:
    return [event.event for event in run.files.read_history().events]


def test_run_ends_with_success_and_every_event_is_on_disk(tmp_path: Path) -> None:
    run = make_run(tmp_path, "red", "blue")
    events: list[str] = []
    start(run)
    state = make_driver(run, lambda event, _state: events.append(event.event)).run()
    run.files.release()
    assert (state.stop.reason, state.iteration) == ("threshold_reached", 2)
    assert (tmp_path / "guide.md").read_text() == "blue"
    assert list_kinds(run) == ["run_started", *events]
    assert events[-3:] == ["evaluation_done", "phase_switched", "stopped"]
    assert run.files.read()[0] == state
    assert run.store.find_current_run() is None


def test_failed_step_is_recorded_and_retried(tmp_path: Path) -> None:
    run = make_run(tmp_path, AgentError("it was empty"), "blue")
    assert drive(run).stop.passed
    (error,) = [event.payload for event in run.files.read_history().events if event.event == "phase_error"]
    assert {"step": "PRODUCE", "reason": "it was empty", "agent": "scripted"}.items() <= error.dump().items()


def test_unavailable_agent_fails_the_run_without_a_retry(tmp_path: Path) -> None:
    run = make_run(tmp_path, AgentUnavailableError("it is not installed"))
    state = drive(run)
    assert (state.status, state.last_error, len(run.agent.requests)) == (Status.FAILED, "it is not installed", 1)


def test_stop_request_during_a_step_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    def request_stop(_request: AgentRequest) -> AgentReply:
        run.files.request_stop("lunch")
        return AgentReply(text="red")

    run = make_run(tmp_path, request_stop)
    state = drive(run)
    assert (state.stop.reason, state.signals.stop_request) == ("user_stop", "lunch")
    assert run.files.read_stop_request() is None


def test_agent_that_is_stopped_on_request_ends_the_run(tmp_path: Path) -> None:
    def stop(_request: AgentRequest) -> AgentReply:
        run.files.request_stop("")
        assert not driver._should_continue()
        raise StopRequestedError("the agent was stopped on request")

    run = make_run(tmp_path, stop)
    start(run)
    driver = make_driver(run)
    state = driver.run()
    run.files.release()
    assert (state.status, state.stop.reason) == (Status.STOPPED, "user_stop")
    assert "phase_error" not in list_kinds(run)


def test_pause_request_interrupts_and_keeps_finished_steps(tmp_path: Path) -> None:
    def request_pause(_request: AgentRequest) -> AgentReply:
        run.files.request_pause()
        return AgentReply(text="red")

    run = make_run(tmp_path, request_pause)
    with pytest.raises(KeyboardInterrupt):
        drive(run)
    assert not run.files.is_pause_requested
    assert list_kinds(run) == ["run_started", "plan_created", "artifact_created"]


def test_complete_answer_on_disk_is_recorded_after_a_crash(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    start(run)
    event = Event.create(run.state, PlanCreated(plan=("write",)), "2026-01-02T03:04:05.678Z")
    run.state = RUN_MACHINE.apply(run.state, event)
    run.files.append([event], run.state)
    run.files.write_answer(ArtifactCreated(agent="crashed"), "blue", tmp_path / "guide.md")
    assert make_driver(run).run().stop.passed
    assert run.agent.requests == []
    run.files.release()


def test_plugin_stops_the_run(tmp_path: Path) -> None:
    class Impatient:
        @pytest.hookimpl
        def pytest_loop_should_stop(self, state: RunState) -> str:
            return f"enough after {state.iteration}"

    run = make_run(tmp_path, "red", plugins=(Impatient(),))
    assert drive(run).stop.reason == "enough after 1"


def test_plugin_receives_every_event(tmp_path: Path) -> None:
    kinds: list[str] = []

    class Listener:
        @pytest.hookimpl
        def pytest_loop_event(self, event: Event) -> None:
            kinds.append(event.event)

    run = make_run(tmp_path, "blue", plugins=(Listener(),))
    drive(run)
    assert list_kinds(run) == ["run_started", *kinds]


def make_gates(*answers: str | None) -> Gates:
    replies = iter(answers)
    return Gates(Confirm.ALWAYS, is_terminal=True, read_answer=lambda _question: next(replies))


def test_rejected_result_is_refined_and_approved_result_ends_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, "blue", "blue and short", gates=make_gates("too long", "y", "y"))
    assert drive(run).stop.passed
    assert "too long" in run.agent.requests[1].prompt


@pytest.mark.parametrize("answer", ["n", None])
def test_iteration_that_is_not_confirmed_ends_or_pauses_the_run(tmp_path: Path, answer: str | None) -> None:
    run = make_run(tmp_path, "red", gates=make_gates(answer))
    if answer is None:
        with pytest.raises(KeyboardInterrupt):
            drive(run)
        assert not run.files.read()[0].is_over
    else:
        assert drive(run).stop.reason == "user_stop"
    assert list_kinds(run)[3] == "evaluation_done", "events are on disk while the user thinks"


@pytest.mark.parametrize("is_shared", [True, False])
def test_writing_and_preparing_run_side_by_side_unless_one_agent_does_both(tmp_path: Path, is_shared: bool) -> None:
    judge = make_agent(AgentReply(data={"checks": [{"rule_id": "a.word.blue", "check": {"contains": "blue"}}]}))
    rules = make_rules("a.word.blue", check="It is blue")
    run = make_run(tmp_path, "blue", rules=rules, judge=judge)
    if is_shared:
        judge = make_agent("blue", *judge.answers, is_serial=True)
        run = make_run(tmp_path, rules=rules, judge=judge, agents=[judge])
    assert drive(run).stop.passed
    payloads = {event.event: event.payload.dump() for event in run.files.read_history().events}
    assert [request.step for request in judge.requests][-1] == "PREPARE"
    assert payloads["checks_prepared"]["checks"][0]["check"] == [{"contains": "blue"}]
    assert is_shared or payloads["artifact_created"]["seconds"] == 0


def test_interrupt_of_one_step_cancels_the_other(tmp_path: Path) -> None:
    judge = make_agent(KeyboardInterrupt())
    run = make_run(tmp_path, "blue", rules=make_rules("a.word.blue", check="It is blue"), judge=judge)
    start(run)
    driver = make_driver(run)
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    assert driver.is_leaving
    run.files.release()
