"""An agent between two curtains: neither what it is told nor what it says has a secret of the environment in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_loop.agents.protocol import MAX_ANSWER_BYTES, Agent, AgentError, AgentReply, AgentRequest, Watch
from pytest_loop.core.text.redaction import RedactedStream, Redactor, redact_values


class RedactedAgent:
    """Another agent. The document is its word too, if it was edited; other files are not looked at."""

    def __init__(self, agent: Agent, redact: Redactor) -> None:
        self._agent = agent
        self._redact = redact
        self.name = agent.name
        self.is_serial = agent.is_serial

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        before = _content(request.artifact)
        heard = RedactedStream(watch.on_output, self._redact)
        critique = tuple(
            type(one).model_validate(redact_values(one.model_dump(), self._redact)) for one in request.critique
        )
        asked = replace(request, prompt=self._redact(request.prompt), critique=critique)
        try:
            found = self._agent.answer(asked, replace(watch, on_output=heard))
        except AgentError as error:
            raise type(error)(self._redact(str(error))) from None
        finally:
            heard.end()
        self._cover(request.artifact, before)
        return AgentReply.model_validate(redact_values(found.model_dump(), self._redact))

    def close(self) -> None:
        self._agent.close()

    def _cover(self, path: Path | None, before: bytes | None) -> None:
        """Take secrets out of a document that was edited; what is no text holds none that could be seen."""
        after = _content(path)
        if path is None or after is None or after == before:
            return
        text = after.decode("utf-8", "surrogateescape")
        if (without := self._redact(text)) != text:
            path.write_bytes(without.encode("utf-8", "surrogateescape"))


def _content(path: Path | None) -> bytes | None:
    is_document = path is not None and path.is_file() and not path.is_symlink()
    return path.read_bytes() if path and is_document and path.stat().st_size <= MAX_ANSWER_BYTES else None
