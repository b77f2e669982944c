"""An agent is not told a secret, and what it says of one is not heard."""

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
from pytest_loop.core.text.redaction import Redactor

Ask = Callable[..., AgentRequest]
SECRET = "s3cr3t-value"
REDACT = Redactor({"API_TOKEN": SECRET})


class Here:
    """An agent in this process that repeats what it was asked, or fails with it."""

    name = "here"
    is_serial = True

    def __init__(self, error: type[AgentError] | None = None, document: bytes | None = None) -> None:
        self.error = error
        self.document = document
        self.asked: AgentRequest | None = None
        self.is_closed = False

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        self.asked = request
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


def test_neither_the_question_nor_the_answer_has_a_secret_in_it(ask: Ask) -> None:
    agent = Here()
    said: list[bytes] = []
    discreet = RedactedAgent(agent, REDACT)
    issue = Issue(rule_id="a.x.y", problem=f"found {SECRET}", fix_instruction="mend it")
    request = ask(prompt=f"use {SECRET}", critique=(issue,))
    reply = discreet.answer(request, Watch(timeout=7, on_output=said.append))
    assert agent.asked
    assert agent.asked.prompt == "use [API_TOKEN]"
    assert agent.asked.critique[0].problem == "found [API_TOKEN]"
    assert (agent.asked.step, agent.asked.artifact) == (request.step, request.artifact)
    blocked = Blocked(rule="a.x.y", reason="[API_TOKEN]")
    assert reply == AgentReply(
        text="it is [API_TOKEN]",
        data={"x": ["[API_TOKEN]", 1]},
        usage=Usage(tokens=5),
        exit_signal=True,
        blocked=blocked,
    )
    assert b"".join(said) == b"thinking of [API_TOKEN]\nand s3"


@pytest.mark.parametrize("kind", [AgentError, AgentUnavailableError, StopRequestedError])
def test_an_error_stays_what_it_is_without_the_secret(ask: Ask, kind: type[AgentError]) -> None:
    said: list[bytes] = []
    with pytest.raises(kind, match=r"^no: \[API_TOKEN\]$") as caught:
        RedactedAgent(Here(kind), REDACT).answer(ask(), Watch(on_output=said.append))
    assert type(caught.value) is kind
    assert said[-1] == b"s3"


def test_a_document_that_was_edited_has_none_either(ask: Ask) -> None:
    request = ask(artifact="before")
    assert request.artifact
    RedactedAgent(Here(document=b"\xff it is s3cr3t-value\r\n"), REDACT).answer(request, Watch())
    assert request.artifact.read_bytes() == b"\xff it is [API_TOKEN]\r\n"


@pytest.mark.parametrize("document", [b"harmless", b"\0" * 8 * 1024 * 1024 + SECRET.encode()])
def test_a_document_without_one_or_beyond_all_measure_stays(ask: Ask, document: bytes) -> None:
    request = ask(artifact="before")
    assert request.artifact
    RedactedAgent(Here(document=document), REDACT).answer(request, Watch())
    assert request.artifact.read_bytes() == document


def test_a_document_that_was_not_edited_is_not_ours_to_change(ask: Ask) -> None:
    request = ask(artifact=f"the person wrote {SECRET}")
    assert request.artifact
    RedactedAgent(Here(), REDACT).answer(request, Watch())
    assert request.artifact.read_text() == f"the person wrote {SECRET}"
    RedactedAgent(Here(), REDACT).answer(replace(request, artifact=None), Watch())


def test_it_is_the_other_agent_in_all_else() -> None:
    agent = Here()
    discreet = RedactedAgent(agent, REDACT)
    assert (discreet.name, discreet.is_serial) == ("here", True)
    discreet.close()
    assert agent.is_closed
