"""An agent between two curtains: neither what it is told nor what it says has a secret of the environment in it."""

from __future__ import annotations

from dataclasses import replace

from pytest_loop.agents.protocol import Agent, AgentError, AgentReply, AgentRequest, Watch
from pytest_loop.core.redacting import RedactedStream, Redactor, redacted


class Discreet:
    """Another agent. Files that it writes are not its words: who keeps them has to look at them."""

    def __init__(self, agent: Agent, redact: Redactor) -> None:
        self._agent = agent
        self._redact = redact
        self.name = agent.name
        self.is_serial = agent.is_serial

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        heard = RedactedStream(watch.heard, self._redact)
        critique = tuple(type(one).model_validate(redacted(one.model_dump(), self._redact)) for one in request.critique)
        asked = replace(request, prompt=self._redact(request.prompt), critique=critique)
        try:
            found = self._agent.answer(asked, replace(watch, heard=heard))
        except AgentError as error:
            raise type(error)(self._redact(str(error))) from None
        finally:
            heard.end()
        return AgentReply.model_validate(redacted(found.model_dump(), self._redact))

    def close(self) -> None:
        self._agent.close()
