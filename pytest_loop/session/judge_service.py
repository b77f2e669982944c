"""Serve the judge agent: every process of a session sends it questions through a socket."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.agent_judge import AgentJudge
from pytest_loop.agents.answers import JudgeAnswer
from pytest_loop.agents.factory import AgentFactory
from pytest_loop.agents.protocol import AgentUnavailableError, Watch
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.errors import CheckError, LoopError
from pytest_loop.rules.checks.check import JudgeReply
from pytest_loop.settings.session_settings import SessionSettings
from pytest_loop.settings.settings import Settings

MAX_TRIES = 3
BACKOFF = 0.5
_MAX_QUESTION_BYTES = 1024 * 1024


class JudgeService:
    """Answer questions that arrive at a socket, each in its own thread.

    A judge that raises is tried again after a growing delay. A message must carry the key. `on_close` is called once
    no more questions are accepted.
    """

    def __init__(
        self, judge: Callable[[str, Path | None], JudgeAnswer], on_close: Callable[[], None] | None = None
    ) -> None:
        self._judge = judge
        self._on_close = on_close
        self._closed = threading.Event()
        self._listener = _open_listener()
        self.key = secrets.token_hex(16)
        self.address = json.dumps(self._listener.address)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        if self._on_close is not None:
            self._on_close()
        with contextlib.suppress(OSError):
            _connect(self.address).close()  # wakes the thread that waits in accept()
        self._listener.close()

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
            except OSError:  # no file descriptor is free: try again later
                self._closed.wait(BACKOFF)
                continue
            threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection: Connection[Any, Any]) -> None:
        with connection, contextlib.suppress(OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
            message = json.loads(connection.recv_bytes(_MAX_QUESTION_BYTES))
            if hmac.compare_digest(message["key"].encode(), self.key.encode()):
                answer = self._answer(message["question"], message["artifact"])
                connection.send_bytes(json.dumps(answer).encode())

    def _answer(self, question: str, artifact: str) -> dict[str, Any]:
        reason = ""
        for tries in range(1, MAX_TRIES + 1):
            try:
                return self._judge(question, Path(artifact) if artifact else None).model_dump()
            except LoopError as error:
                reason = str(error)
                if isinstance(error, AgentUnavailableError) or self._closed.wait(BACKOFF * 2 ** (tries - 1)):
                    break
        return {"error": reason, "tries": tries}


def start_judge(config: pytest.Config, settings: SessionSettings) -> JudgeService:
    """Start the judge that `--loop-judge` names; it serves from a thread of this process."""
    try:
        agent = AgentFactory(config.rootpath, config.hook, Redactor(os.environ)).make(settings.judge)
    except AgentUnavailableError as error:
        raise pytest.UsageError(f"--loop-judge: {error}") from None
    watch = partial(Watch, settings.agent_timeout, settings.agent_silence)
    judge = AgentJudge(agent, config.rootpath, secrets.token_hex(4), watch, settings.prompts, phase=settings.phase)

    def close() -> None:
        judge.cancel()
        agent.close()

    return JudgeService(judge.answer, close)


def start_judge_for_run(config: pytest.Config, settings: Settings) -> JudgeService | None:
    """Start the judge that the settings of a run name; None if they name none."""
    agents = settings.agents
    if not agents.judge:
        return None
    session_settings = SessionSettings(
        phase="B",
        baseline=None,
        save_baseline=None,
        judge=agents.judge,
        prompts=config.rootpath / agents.prompts if agents.prompts else None,
        agent_timeout=agents.agent_timeout,
        agent_silence=agents.agent_silence,
    )
    return start_judge(config, session_settings)


def ask_judge(address: str, key: str, question: str, artifact: Path | None) -> JudgeReply:
    """Return the judge's answer; raise `CheckError` if there is none."""
    message = {"key": key, "question": question, "artifact": str(artifact or "")}
    try:
        with _connect(address) as connection:
            connection.send_bytes(json.dumps(message).encode())
            reply = json.loads(connection.recv_bytes())
    except (OSError, EOFError) as error:
        raise CheckError(f"the judge cannot be reached to answer {question!r} ({type(error).__name__})") from None
    if "error" in reply:
        tries = f"{reply['tries']} {'try' if reply['tries'] == 1 else 'tries'}"
        raise CheckError(f"the judge gave no answer to {question!r} in {tries}: {reply['error']}")
    return JudgeReply(**JudgeAnswer.model_validate(reply).model_dump())


def _open_listener() -> Listener:
    """Listen on a Unix socket, or on localhost if the temporary folder's path is too long for one."""
    try:
        return Listener()
    except OSError:
        return Listener(("localhost", 0))


def _connect(address: str) -> Connection[Any, Any]:
    target = json.loads(address)
    return Client(target if isinstance(target, str) else tuple(target))
