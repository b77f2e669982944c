"""Ask an agent the questions of rules, and accept only valid answers."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from pytest_loop.agents import prompts
from pytest_loop.agents.answers import JudgeAnswer, validate_answer
from pytest_loop.agents.protocol import MAX_ANSWER_BYTES, Agent, AgentError, AgentRequest, Watch
from pytest_loop.core.model.run_state import Usage
from pytest_loop.core.text.sanitizer import fence_text


@dataclass
class AgentJudge:
    """Ask an agent about a copy of the document, so that edits by the agent do not count.

    `watch` returns the limits of a request. Prompts are made from the templates in the folder `prompts`, unless the
    plugin behind `make_prompt` returns another one, and `nonce` marks in them what is data.
    """

    agent: Agent
    root: Path
    nonce: str
    watch: Callable[[], Watch] = Watch
    prompts: Path | None = None
    make_prompt: Callable[[AgentRequest], str | None] = lambda _request: None
    iteration: int = 1
    phase: str = "A"
    usage: Usage = field(default_factory=Usage)
    was_asked: bool = False
    is_cancelled: bool = False
    _last_errors: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, question: str, artifact: Path | None) -> JudgeAnswer:
        """Return the valid answer to a question; raise `AgentError` if the agent gives none."""
        if artifact is None:
            return self._ask(question, None)
        if not artifact.is_file():
            return JudgeAnswer(passed=False, reason="there is no document yet")
        if artifact.stat().st_size > MAX_ANSWER_BYTES:
            raise AgentError(f"expected at most {MAX_ANSWER_BYTES // 1024**2} MB to judge, found more: {artifact}")
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            copy = Path(folder) / artifact.name
            copy.write_bytes(artifact.read_bytes())
            return self._ask(question, copy)

    def cancel(self) -> None:
        """Cancel the requests in progress."""
        self.is_cancelled = True

    def _ask(self, question: str, copy: Path | None) -> JudgeAnswer:
        request = self._make_request(question, copy)
        request = replace(request, prompt=self.make_prompt(request) or request.prompt)
        self.was_asked = True
        reply = self.agent.answer(request, self._make_watch())
        with self._lock:
            self.usage = self.usage.plus(reply.usage)
        try:
            return validate_answer(reply, JudgeAnswer)
        except AgentError as error:  # the prompt of the next attempt quotes it
            self._last_errors[request.key] = str(error)
            raise

    def _make_request(self, question: str, copy: Path | None) -> AgentRequest:
        text = copy.read_bytes().decode("utf-8", "replace") if copy else ""
        key = hashlib.sha256(f"{question}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]
        values = {
            "question": question,
            "artifact": fence_text(text, self.nonce) if copy else "",
            "trouble": self._last_errors.pop(key, ""),
        }
        return AgentRequest(
            "JUDGE",
            prompts.render_template("JUDGE", values, self.prompts),
            self.root,
            copy,
            self.iteration,
            self.phase,
            schema=JudgeAnswer.model_json_schema(),
            key=key,
        )

    def _make_watch(self) -> Watch:
        watch = self.watch()
        return replace(watch, should_continue=lambda: not self.is_cancelled and watch.should_continue())
