"""Secrets in the requests, output and replies of agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_loop.agents.protocol import (
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
    Watch,
)
from pytest_loop.agents.redacted_agent import RedactedAgent
from pytest_loop.core.model.evaluation import Issue
from pytest_loop.core.model.run_state import Blocked, Usage
from pytest_loop.core.text.redactor import Redactor

Ask = Callable[..., AgentRequest]
SECRET = "s3cr3t-value"
REDACT = Redactor({"API_TOKEN": SECRET})


class EchoAgent:
    """An agent that answers with the secret, or fails with it."""

    name = "here"

    def __init__(self, error: type[AgentError] | None = None, document: bytes | None = None) -> None:
        self.error = error
        self.document = document
        self.request: AgentRequest | None = None
        self.is_closed = False

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        self.request = request
        if self.document is not None and request.artifact:
            request.artifact.write_bytes(self.document)
        for piece in (b"thinking of s3cr3t", b"-value\n", b"and s3"):
            watch.on_output(piece)
        if self.error:
            raise self.error(f"no: {SECRET}")
        usage, blocked = Usage(tokens=5), Blocked(rule="a.x.y", reason=SECRET)
        return AgentReply(
            text=f"it is {SECRET}", data={"x": [SECRET, 1]}, usage=usage, exit_signal=True, blocked=blocked
        )

    def close(self) -> None:
        self.is_closed = True


def test_requests_and_replies_have_no_secrets(ask: Ask) -> None:
    agent = EchoAgent()
    output: list[bytes] = []
    redacted = RedactedAgent(agent, REDACT)
    issue = Issue(rule_id="a.x.y", problem=f"found {SECRET}", fix_instruction="mend it")
    request = ask(prompt=f"use {SECRET}", critique=(issue,))
    reply = redacted.answer(request, Watch(timeout=7, on_output=output.append))
    assert agent.request
    assert agent.request.prompt == "use [API_TOKEN]"
    assert agent.request.critique[0].problem == "found [API_TOKEN]"
    assert (agent.request.step, agent.request.artifact) == (request.step, request.artifact)
    blocked = Blocked(rule="a.x.y", reason="[API_TOKEN]")
    assert reply == AgentReply(
        text="it is [API_TOKEN]",
        data={"x": ["[API_TOKEN]", 1]},
        usage=Usage(tokens=5),
        exit_signal=True,
        blocked=blocked,
    )
    assert b"".join(output) == b"thinking of [API_TOKEN]\nand s3"


@pytest.mark.parametrize("kind", [AgentError, AgentUnavailableError, StopRequestedError])
def test_an_error_keeps_its_type_without_the_secret(ask: Ask, kind: type[AgentError]) -> None:
    output: list[bytes] = []
    with pytest.raises(kind, match=r"^no: \[API_TOKEN\]$") as caught:
        RedactedAgent(EchoAgent(kind), REDACT).answer(ask(), Watch(on_output=output.append))
    assert type(caught.value) is kind
    assert output[-1] == b"s3"


def test_an_edited_document_has_no_secrets(ask: Ask) -> None:
    request = ask(artifact="before")
    assert request.artifact
    RedactedAgent(EchoAgent(document=b"\xff it is s3cr3t-value\r\n"), REDACT).answer(request, Watch())
    assert request.artifact.read_bytes() == b"\xff it is [API_TOKEN]\r\n"


@pytest.mark.parametrize("document", [b"harmless", b"\0" * 8 * 1024 * 1024 + SECRET.encode()])
def test_a_document_without_secrets_or_too_large_stays(ask: Ask, document: bytes) -> None:
    request = ask(artifact="before")
    assert request.artifact
    RedactedAgent(EchoAgent(document=document), REDACT).answer(request, Watch())
    assert request.artifact.read_bytes() == document


def test_an_unedited_document_is_not_redacted(ask: Ask) -> None:
    request = ask(artifact=f"the person wrote {SECRET}")
    assert request.artifact
    RedactedAgent(EchoAgent(), REDACT).answer(request, Watch())
    assert request.artifact.read_text() == f"the person wrote {SECRET}"
    RedactedAgent(EchoAgent(), REDACT).answer(replace(request, artifact=None), Watch())


def test_name_and_close_are_those_of_the_agent() -> None:
    agent = EchoAgent()
    redacted = RedactedAgent(agent, REDACT)
    assert redacted.name == "here"
    redacted.close()
    assert agent.is_closed
