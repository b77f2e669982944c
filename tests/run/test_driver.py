"""The driver: it executes the machine's commands, records events, and obeys requests."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import ArtifactCreated, EvaluationDone, PlanCreated, RunStarted
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
    payloads = [event.payload.dump() for event in run.files.read_history().events if event.event == "evaluation_done"]
    assert [payload["verdicts"] for payload in payloads] == [
        {"fail": {"fail": ["a.word.blue"]}}, {"pass": {"fail": ["a.word.blue"]}},
    ]  # fmt: skip
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
        run.files.requests.ask_to_stop("lunch")
        return AgentReply(text="red")

    run = make_run(tmp_path, request_stop)
    state = drive(run)
    assert (state.stop.reason, state.signals.stop_request) == ("lunch", "lunch")
    assert run.files.requests.read_stop_reason() is None


def test_agent_that_is_stopped_on_request_ends_the_run(tmp_path: Path) -> None:
    def stop(_request: AgentRequest) -> AgentReply:
        run.files.requests.ask_to_stop("")
        assert not driver._should_continue()
        raise StopRequestedError("the agent was stopped on request")

    run = make_run(tmp_path, stop)
    start(run)
    driver = make_driver(run)
    state = driver.run()
    run.files.release()
    assert (state.status, state.stop.reason) == (Status.STOPPED, "user_stop")
    assert "phase_error" not in list_kinds(run)


@pytest.mark.parametrize(
    "error",
    [AgentUnavailableError("please log in"), StopRequestedError("stopped"), KeyboardInterrupt(), AgentError("no")],
)
def test_sealed_files_are_put_back_and_named_however_a_step_ends(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "guide.rules.yaml").write_text("strict")

    def cheat(request: AgentRequest) -> AgentReply:
        (request.workspace / "guide.rules.yaml").write_text("easy")
        raise error

    run = make_run(tmp_path, cheat, error)
    with contextlib.suppress(KeyboardInterrupt):
        drive(run)
    assert (tmp_path / "guide.rules.yaml").read_text() == "strict"
    assert "  guide.rules.yaml: was changed, and was put back" in run.output.getvalue().splitlines()
    payloads = [event.payload.dump() for event in run.files.read_history().events]
    findings = [finding["path"] for payload in payloads for finding in payload.get("findings", ())]
    assert findings == ([] if isinstance(error, KeyboardInterrupt) else ["guide.rules.yaml"])


def test_edit_that_was_put_back_after_an_error_makes_the_evaluation_void(tmp_path: Path) -> None:
    (tmp_path / "guide.rules.yaml").write_text("strict")

    def cheat(request: AgentRequest) -> AgentReply:
        (request.workspace / "guide.rules.yaml").write_text("easy")
        raise AgentError("it was empty")

    run = make_run(tmp_path, cheat, "blue", "blue too")
    assert (drive(run).stop.reason, run.state.iteration) == ("threshold_reached", 1)
    evaluations = [e.payload for e in run.files.read_history().events if isinstance(e.payload, EvaluationDone)]
    assert [evaluation.void for evaluation in evaluations] == [True, False]


def test_project_that_is_gone_does_not_hide_why_a_step_ended(tmp_path: Path) -> None:
    def remove(request: AgentRequest) -> AgentReply:
        run.context.project.root = tmp_path / "nowhere"
        raise KeyboardInterrupt

    run = make_run(tmp_path, remove)
    with pytest.raises(KeyboardInterrupt):
        drive(run)
    assert "cannot look at the project" in run.output.getvalue()


def test_edits_of_the_user_while_a_question_waits_stay(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("old")

    def answer(_question: str) -> str:
        (tmp_path / "app.py").write_text("mine")
        return "y"

    gates = Gates(Confirm.ALWAYS, is_terminal=True, read_answer=answer)
    run = make_run(tmp_path, "red", "blue", gates=gates)
    assert drive(run).stop.passed
    assert (tmp_path / "app.py").read_text() == "mine"
    evaluations = [e.payload for e in run.files.read_history().events if isinstance(e.payload, EvaluationDone)]
    assert [evaluation.findings for evaluation in evaluations] == [(), ()]


def test_pause_request_interrupts_and_keeps_finished_steps(tmp_path: Path) -> None:
    def request_pause(_request: AgentRequest) -> AgentReply:
        run.files.requests.ask_to_pause()
        return AgentReply(text="red")

    run = make_run(tmp_path, request_pause)
    with pytest.raises(KeyboardInterrupt):
        drive(run)
    assert not run.files.requests.has_pause
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


@pytest.mark.parametrize("kind", ["artifact_created", "evaluation_done", "critique_done"])
def test_step_of_a_torn_last_line_is_repeated_and_no_event_is_lost(tmp_path: Path, kind: str) -> None:
    """Although run.json already has the state after the event that is cut in the middle."""
    undisturbed = make_run(tmp_path / "undisturbed", "red", "blue")
    drive(undisturbed)
    killed = make_run(tmp_path / "killed", "red", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        drive(killed)
    cut = list_kinds(killed).index(kind)
    lines = killed.files.history.read_bytes().splitlines(keepends=True)
    killed.files.history.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
    resumed = make_run(tmp_path / "killed", *(["red"] if kind == "artifact_created" else []), "blue")
    resumed.files.acquire()
    resumed.state, history = resumed.files.read()
    resumed.files.repair(history)
    state = make_driver(resumed).run()
    resumed.files.release()
    assert (state.stop.reason, history.damage) == ("threshold_reached", [])
    assert list_kinds(resumed) == list_kinds(undisturbed)


def test_pointer_has_the_time_of_the_last_event_while_an_agent_works(tmp_path: Path) -> None:
    times: list[tuple[str, str]] = []

    def look(_request: AgentRequest) -> AgentReply:
        last = run.files.read_history().events[-1].ts
        times.append((json.loads(run.store.pointer.read_bytes())["updated_at"], last))
        return AgentReply(text="red" if len(times) == 1 else "blue")

    run = make_run(tmp_path, look, look)
    drive(run)
    assert [pointed for pointed, _ in times] == [last for _, last in times]
    assert times[0] < times[1]


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


def test_writing_and_preparing_run_side_by_side_although_one_agent_does_both(tmp_path: Path) -> None:
    both_work = threading.Barrier(2, timeout=30)

    def work(request: AgentRequest) -> AgentReply:
        both_work.wait()
        checks = [{"rule_id": "a.word.blue", "check": {"contains": "blue"}}]
        return AgentReply(data={"checks": checks}) if request.step == "PREPARE" else AgentReply(text="blue")

    run = make_run(tmp_path, work, work, rules=make_rules("a.word.blue", check="It is blue"))
    assert drive(run).stop.passed
    payloads = {event.event: event.payload.dump() for event in run.files.read_history().events}
    assert sorted(request.step for request in run.agent.requests) == ["PREPARE", "PRODUCE"]
    assert payloads["checks_prepared"]["checks"][0]["check"] == [{"contains": "blue"}]
    assert payloads["artifact_created"]["seconds"] == 0, "time is counted once"


def test_interrupt_of_one_step_cancels_the_other(tmp_path: Path) -> None:
    judge = make_agent(KeyboardInterrupt())
    run = make_run(tmp_path, "blue", rules=make_rules("a.word.blue", check="It is blue"), judge=judge)
    start(run)
    driver = make_driver(run)
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    assert driver.is_cancelled
    run.files.release()
