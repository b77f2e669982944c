"""Recording, replaying and scripting answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.protocol import (
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
    Watch,
)
from pytest_loop.agents.replay_agent import RecordedAgent, ReplayAgent
from pytest_loop.agents.scripted_agent import ScriptedAgent
from pytest_loop.core.model.run_state import Usage
from pytest_loop.errors import StateError

Ask = Callable[..., AgentRequest]


class FunctionAgent:
    """An agent that calls a function in this process."""

    name = "here"

    def __init__(self, function: Callable[[AgentRequest], Any]) -> None:
        self.function = function
        self.closed = False

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        answer = self.function(request)
        return answer if isinstance(answer, AgentReply) else AgentReply(text=answer)

    def close(self) -> None:
        self.closed = True


def test_a_recording_is_replayed(ask: Ask, tmp_path: Path) -> None:
    def edit(request: AgentRequest) -> None:
        assert request.artifact
        request.artifact.write_bytes(b"edited\r\n\xff")

    script = ScriptedAgent(
        {
            "PRODUCE": [AgentError("tired"), AgentReply(text="grün", usage=Usage(tokens=5), exit_signal=True)],
            "REFINE": [edit, "last"],
            "PLAN": AgentUnavailableError("gone"),
        }
    )
    agent = FunctionAgent(script)
    recorded = RecordedAgent(agent, tmp_path / "run.jsonl")
    assert recorded.name == "here"
    first = [ask_agent(recorded, ask(step)) for step in ("PRODUCE", "PRODUCE", "REFINE", "REFINE", "PLAN")]
    recorded.close()
    assert agent.closed
    request = ask("REFINE", artifact="old")
    again = ReplayAgent("run.jsonl", tmp_path)
    assert [ask_agent(again, ask(step)) for step in ("PRODUCE", "PRODUCE", "REFINE", "REFINE", "PLAN")] == first
    assert request.artifact
    assert request.artifact.read_bytes() == "edited\r\n\ufffd".encode()
    with pytest.raises(AgentUnavailableError, match=r"replay:.*run.jsonl has no further answer for REFINE"):
        again.answer(request, Watch())
    again.close()


def ask_agent(agent: FunctionAgent | RecordedAgent | ReplayAgent, request: AgentRequest) -> AgentReply | str:
    try:
        return agent.answer(request, Watch())
    except AgentError as error:
        return f"{type(error).__name__}: {error}"


def test_questions_in_any_order_get_their_answers(ask: Ask, tmp_path: Path) -> None:
    recorded = RecordedAgent(FunctionAgent(lambda request: f"answer to {request.key}"), tmp_path / "run.jsonl")
    for key in ("one", "two", "two"):
        recorded.answer(ask("JUDGE", key=key), Watch())
    again = ReplayAgent("run.jsonl", tmp_path)
    assert [again.answer(ask("JUDGE", key=key), Watch()).text for key in ("two", "one", "two")] == [
        "answer to two",
        "answer to one",
        "answer to two",
    ]
    with pytest.raises(AgentUnavailableError):
        again.answer(ask("JUDGE", key="three"), Watch())


def test_a_resumed_run_skips_earlier_iterations(ask: Ask, tmp_path: Path) -> None:
    recorded = RecordedAgent(FunctionAgent(lambda request: f"text {request.iteration}"), tmp_path / "run.jsonl")
    for iteration in (1, 2, 3):
        recorded.answer(ask("REFINE", iteration=iteration), Watch())
    again = ReplayAgent("run.jsonl", tmp_path)
    assert again.answer(ask("REFINE", iteration=2), Watch()).text == "text 2"


def test_a_stop_request_is_not_recorded(ask: Ask, tmp_path: Path) -> None:
    recorded = RecordedAgent(FunctionAgent(ScriptedAgent({"PLAN": StopRequestedError("stop")})), tmp_path / "run.jsonl")
    with pytest.raises(StopRequestedError):
        recorded.answer(ask("PLAN"), Watch())
    assert (tmp_path / "run.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read {}: No such file or directory"),
        ("hello", "{} is not a recording made by --loop-record (Expecting value: line 1 column 1 (char 0))"),
        ("[" * 100_000, "{} is not a recording made by --loop-record (maximum recursion depth exceeded"),
        ('{"step": "PLAN"}\n5', "{}:2: expected a recorded answer, found something else"),
        ('{"reply": {}}', "{}:1: expected a recorded answer, found something else"),
    ],
    ids=["missing", "prose", "deep", "a number", "no step"],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "run.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AgentUnavailableError) as error:
        ReplayAgent(path.name, path.parent)
    assert str(error.value).startswith(message.format(path))


def test_invalid_answers_are_refused_and_unknown_fields_ignored(ask: Ask, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"reply": {"text": "x", "later": 5}}, {"reply": {"text": 5}}, {"reply": None}, {}]
    (tmp_path / "run.jsonl").write_text("\n".join(json.dumps({"step": "PLAN", **row}) for row in rows))
    agent = ReplayAgent("run.jsonl", tmp_path, "played")
    assert agent.answer(ask("PLAN"), Watch()).text == "x"
    for _ in range(2):
        with pytest.raises(AgentUnavailableError, match="played holds something for PLAN that is no answer"):
            agent.answer(ask("PLAN"), Watch())
    assert agent.answer(ask("PLAN"), Watch()) == AgentReply()


def test_an_unwritable_recording_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(
        AgentUnavailableError, match=r"--loop-record: cannot write .*/none/x: No such file or directory"
    ):
        RecordedAgent(FunctionAgent(str), tmp_path / "none" / "x")


def test_a_write_error_while_recording_is_reported(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    recorded = RecordedAgent(FunctionAgent(lambda _request: "x"), tmp_path / "folder" / "x")
    (tmp_path / "folder" / "x").unlink()
    (tmp_path / "folder").rmdir()
    with pytest.raises(StateError, match="--loop-record: cannot write"):
        recorded.answer(AgentRequest("PLAN", "", tmp_path), Watch())


def test_a_script_repeats_its_last_answer(ask: Ask) -> None:
    agent = ScriptedAgent({"REFINE": ["one", lambda request: request.prompt], "PLAN": {"plan": []}, "JUDGE": ()})
    assert [agent(ask("REFINE")) for _ in range(3)] == ["one", "do it", "do it"]
    assert agent(ask("PLAN")) == {"plan": []}
    for step in ("JUDGE", "PRODUCE"):
        with pytest.raises(AgentError, match=f"the script has no answer for {step}"):
            agent(ask(step))
    assert [request.step for request in agent.requests] == ["REFINE"] * 3 + ["PLAN", "JUDGE", "PRODUCE"]
