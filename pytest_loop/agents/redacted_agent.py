"""Remove the secrets of the environment from the input and output of an agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_loop.agents.protocol import MAX_ANSWER_BYTES, Agent, AgentError, AgentReply, AgentRequest, Watch
from pytest_loop.core.model.evaluation import Issue
from pytest_loop.core.text.redactor import RedactedStream, Redactor, redact_values


class RedactedAgent:
    """Redact the requests, output and replies of another agent, and the document that it edits, but no other file."""

    def __init__(self, agent: Agent, redact: Redactor) -> None:
        self._agent = agent
        self._redact = redact
        self.name = agent.name

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        before = _read_document(request.artifact)
        critique = tuple(
            Issue.model_validate(redact_values(issue.model_dump(), self._redact)) for issue in request.critique
        )
        redacted_request = replace(request, prompt=self._redact(request.prompt), critique=critique)
        output = RedactedStream(watch.on_output, self._redact)
        redacted_watch = replace(watch, on_output=output, on_wait=lambda text: watch.on_wait(self._redact(text)))
        try:
            reply = self._agent.answer(redacted_request, redacted_watch)
        except AgentError as error:
            error.args = (self._redact(str(error)),)
            raise
        finally:
            output.end()
            self._redact_document(request.artifact, before)
        return AgentReply.model_validate(redact_values(reply.model_dump(), self._redact))

    def close(self) -> None:
        self._agent.close()

    def _redact_document(self, path: Path | None, before: bytes | None) -> None:
        """Redact the document if the agent changed it."""
        after = _read_document(path)
        if path is None or after is None or after == before:
            return
        text = after.decode("utf-8", "surrogateescape")
        if (redacted := self._redact(text)) != text:
            path.write_bytes(redacted.encode("utf-8", "surrogateescape"))


def _read_document(path: Path | None) -> bytes | None:
    if path is None or path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_ANSWER_BYTES:
        return None
    return path.read_bytes()
