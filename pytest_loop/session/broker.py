"""One judge for all processes of a session: it lives where the run lives, and workers ask it through a socket."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from pytest_loop.agents.answers import JudgeAnswer
from pytest_loop.agents.protocol import AgentUnavailableError
from pytest_loop.errors import CheckError, LoopError

__all__ = ["Broker", "JudgeAnswer", "ask"]
TRIES = 3
BACKOFF = 0.5
_LONGEST = 1024 * 1024


class Broker:
    """Hears questions and gives them to the judge, each in a thread of its own.

    A judge that gives no answer is asked again, a little later each time. Words cross the socket as JSON behind a key,
    and a caller that says nothing keeps nobody waiting but itself. `dismiss` is called when it closes.
    """

    def __init__(
        self, judging: Callable[[str, Path | None], JudgeAnswer], dismiss: Callable[[], None] | None = None
    ) -> None:
        self._judging = judging
        self._dismiss = dismiss
        self._closed = threading.Event()
        self._listener = _listener()
        self.key = secrets.token_hex(16)
        self.address = json.dumps(self._listener.address)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """No more questions, and no more thoughts about those that were asked."""
        self._closed.set()
        if self._dismiss is not None:
            self._dismiss()
        with contextlib.suppress(OSError):
            _client(self.address).close()  # wakes the thread that waits for callers
        self._listener.close()

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
            except OSError:  # no descriptor left for this caller: perhaps a little later
                self._closed.wait(BACKOFF)
                continue
            threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection: Connection[Any, Any]) -> None:
        with connection, contextlib.suppress(OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
            asked = json.loads(connection.recv_bytes(_LONGEST))
            if hmac.compare_digest(asked["key"].encode(), self.key.encode()):
                connection.send_bytes(json.dumps(self._answer(asked["question"], asked["artifact"])).encode())

    def _answer(self, question: str, artifact: str) -> dict[str, Any]:
        reason = ""
        for number in range(1, TRIES + 1):
            try:
                return self._judging(question, Path(artifact) if artifact else None).model_dump()
            except LoopError as error:
                reason = str(error)
                if isinstance(error, AgentUnavailableError) or self._closed.wait(BACKOFF * 2 ** (number - 1)):
                    break
        return {"error": reason, "tries": number}


def _listener() -> Listener:
    """A socket in the file system, or one of the machine where the temporary folder's name is too long for that."""
    try:
        return Listener()
    except OSError:
        return Listener(("localhost", 0))


def _client(address: str) -> Connection[Any, Any]:
    where = json.loads(address)
    return Client(where if isinstance(where, str) else tuple(where))


def ask(address: str, key: str, question: str, artifact: Path | None) -> JudgeAnswer:
    """Put a question to the judge; raises `CheckError` where no answer comes."""
    said = {"key": key, "question": question, "artifact": str(artifact or "")}
    try:
        with _client(address) as connection:
            connection.send_bytes(json.dumps(said).encode())
            answer = json.loads(connection.recv_bytes())
    except (OSError, EOFError) as error:
        raise CheckError(f"the judge cannot be reached to answer {question!r} ({type(error).__name__})") from None
    if "error" in answer:
        tries = f"{answer['tries']} {'try' if answer['tries'] == 1 else 'tries'}"
        raise CheckError(f"the judge gave no answer to {question!r} in {tries}: {answer['error']}")
    return JudgeAnswer.model_validate(answer)
