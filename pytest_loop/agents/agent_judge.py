"""The judge: puts the questions of rules to an agent, and takes nothing but a plain answer."""

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
class Judge:
    """Asks an agent. It gets a copy of the document: nothing that it does there counts."""

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
    is_dismissed: bool = False
    _troubles: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, question: str, artifact: Path | None) -> JudgeAnswer:
        """The answer to a question; raises `AgentError`."""
        if artifact is None:
            return self._asked(question, None)
        if not artifact.is_file():
            return JudgeAnswer(passed=False, reason="there is no document yet")
        if artifact.stat().st_size > MAX_ANSWER_BYTES:
            raise AgentError(f"expected at most {MAX_ANSWER_BYTES // 1024**2} MB to judge, found more: {artifact}")
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            copy = Path(folder) / artifact.name
            copy.write_bytes(artifact.read_bytes())
            return self._asked(question, copy)

    def dismiss(self) -> None:
        """Nobody waits for its answers any more."""
        self.is_dismissed = True

    def _asked(self, question: str, copy: Path | None) -> JudgeAnswer:
        request = self._request(question, copy)
        request = replace(request, prompt=self.make_prompt(request) or request.prompt)
        self.was_asked = True
        reply = self.agent.answer(request, self._watch())
        with self._lock:
            self.usage = self.usage.plus(reply.usage)
        try:
            return validate_answer(reply, JudgeAnswer)
        except AgentError as error:  # the next try is told
            self._troubles[request.key] = str(error)
            raise

    def _request(self, question: str, copy: Path | None) -> AgentRequest:
        text = copy.read_bytes().decode("utf-8", "replace") if copy else ""
        key = hashlib.sha256(f"{question}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]
        values = {
            "question": question,
            "artifact": fence_text(text, self.nonce) if copy else "",
            "trouble": self._troubles.pop(key, ""),
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

    def _watch(self) -> Watch:
        watch = self.watch()
        return replace(watch, should_continue=lambda: not self.is_dismissed and watch.should_continue())
