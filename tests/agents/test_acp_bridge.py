"""Agents that speak the Agent Client Protocol: here a short script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.factory import make_agent
from pytest_loop.agents.protocol import AgentError, AgentRequest, AgentUnavailableError, Watch
from pytest_loop.core.model.run_state import Usage

AGENT = """
    import json, sys
    def send(**message):
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
    def update(**update):
        send(method="session/update", params={"sessionId": "s1", "update": update})
    def say(text):
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
    def ask(method, **params):
        send(id=77, method=method, params=params)
        return json.loads(sys.stdin.readline())
    print("a banner")
    mode, loaded = "code", False
    for line in sys.stdin:
        asked = json.loads(line)
        params, result = asked.get("params"), {}
        if asked["method"] == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": "--loads" in sys.argv}}
        elif asked["method"] == "session/new":
            modes = ["code", "plan"] if "--modes" in sys.argv else []
            values = ["build", "plan"] if "--options" in sys.argv else []
            option = {"id": "how", "category": "mode", "options": [{"value": one} for one in values]}
            result = {"sessionId": "s1", "modes": {"availableModes": [{"id": one} for one in modes]}}
            result["configOptions"] = [{"id": "model", "options": [{"value": "plan"}]}, option]
        elif asked["method"] == "session/load":
            if "--forgets" in sys.argv:
                send(id=asked["id"], error={"code": -32603, "message": "no such session"})
                continue
            loaded = params["sessionId"]
            say("what was said before")
        elif asked["method"] == "session/set_mode":
            mode = params["modeId"]
        elif asked["method"] == "session/set_config_option":
            mode = params["configId"] + "=" + params["value"]
        elif asked["method"] == "session/prompt":
            prompt = params["prompt"][0]["text"]
            if prompt == "fail":
                send(id=asked["id"], error={"code": -32603, "message": "it broke"})
                continue
            if prompt == "limit":
                send(id=asked["id"], error={"code": -32603, "message": "Internal error", "data": {"status": 403, "details": "no plan"}})
                continue
            if prompt == "login":
                send(id=asked["id"], error={"code": -32000, "message": "Authentication required"})
                continue
            if prompt == "leave":
                sys.exit(0)
            update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})
            say("I think first.")
            update(sessionUpdate="tool_call", title="edit calc.py")
            options = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
            given = ask("session/request_permission", options=options)["result"]["outcome"]
            assert ask("session/request_permission")["result"]["outcome"] == {"outcome": "cancelled"}
            odd = ask("fs/read_text_file", path="x")["error"]["code"]
            say(f"{mode} {loaded} ")
            say(f"{given} {odd}")
            result = {"stopReason": "refusal" if prompt == "refuse" else "end_turn"}
        send(id=asked["id"], result=result)
"""
YES = "{'outcome': 'selected', 'optionId': 'yes'} -32601"
NO = "{'outcome': 'selected', 'optionId': 'no'} -32601"
Agent = Callable[..., ClientAgent]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    (tmp_path / "agent.py").write_text(dedent(AGENT))

    def create(words: str = "") -> ClientAgent:
        agent = make_agent(f"acp:{sys.executable} agent.py {words}", tmp_path, {})
        assert isinstance(agent, ClientAgent)
        return agent

    return create


@pytest.mark.measured
def test_produce_and_refine_may_edit(agent: Agent, tmp_path: Path) -> None:
    output: list[bytes] = []
    reply = agent("--modes").answer(AgentRequest("PRODUCE", "Grüße", tmp_path), Watch(on_output=output.append))
    assert reply.text == f"code False {YES}"
    assert reply.usage == Usage()
    assert output[:2] == [b"I think first.\n", b"tool: edit calc.py\n"]


@pytest.mark.measured
def test_other_steps_use_a_read_only_mode(agent: Agent, tmp_path: Path) -> None:
    assert agent("--modes").answer(AgentRequest("JUDGE", "x", tmp_path), Watch()).text == f"plan False {NO}"
    assert agent("--options").answer(AgentRequest("JUDGE", "x", tmp_path), Watch()).text == f"how=plan False {NO}"
    with pytest.raises(AgentError, match="the agent names no mode in which it edits nothing"):
        agent().answer(AgentRequest("JUDGE", "x", tmp_path), Watch())


@pytest.mark.measured
def test_a_session_continues_if_the_agent_can_load_it(agent: Agent, tmp_path: Path) -> None:
    for words, loaded in (("--loads", "s1"), ("", "False"), ("--loads --forgets", "False")):
        client = agent(words)
        client.answer(AgentRequest("PRODUCE", "x", tmp_path), Watch())
        assert client.answer(AgentRequest("REFINE", "x", tmp_path), Watch()).text == f"code {loaded} {YES}"


@pytest.mark.parametrize(
    ("prompt", "kind", "message"),
    [
        ("fail", AgentError, "ended with exit code 1: it broke"),
        ("limit", AgentUnavailableError, r"\(status 403\): Internal error: .*no plan"),
        ("leave", AgentError, "ended with exit code 1: the agent ended before it answered session/prompt"),
        ("refuse", AgentError, "gave no answer of its model"),
        ("login", AgentUnavailableError, r"was refused by its model's server \(status 401\): Authentication required"),
    ],
)
def test_a_failed_request_names_the_reason(
    agent: Agent, tmp_path: Path, prompt: str, kind: type[AgentError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        agent().answer(AgentRequest("PRODUCE", prompt, tmp_path), Watch())


def test_an_agent_has_time_to_save_its_conversation(agent: Agent, tmp_path: Path) -> None:
    client = agent()
    with (tmp_path / "agent.py").open("a") as file:
        file.write("import time; time.sleep(0.5); open('saved', 'w').close()\n")
    client.answer(AgentRequest("PRODUCE", "x", tmp_path), Watch())
    assert (tmp_path / "saved").exists()


def test_a_missing_command_is_refused_at_once(tmp_path: Path) -> None:
    for spec, message in (
        ("acp:no-such-agent", "cannot run 'no-such-agent': no such command is installed here"),
        ("acp:", "expected a command after `acp:`, found nothing"),
    ):
        with pytest.raises(AgentUnavailableError, match=message):
            make_agent(spec, tmp_path, {})
