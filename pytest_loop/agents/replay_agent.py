"""`replay:FILE` plays the answers of a recorded run; `--loop-record FILE` makes such a file."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import ValidationError

from pytest_loop.agents.protocol import (
    Agent,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
    Watch,
)
from pytest_loop.errors import StateError

Row = dict[str, Any]
_WRITING = Lock()


class ReplayAgent:
    """Gives the recorded answers in their order, each to the step, and the question, that it was given to.

    A run that goes on leaves out the answers of iterations that are over.
    """

    is_serial = False

    def __init__(self, path: Path, name: str = "") -> None:
        self.name = name or f"replay:{path}"
        self._answers: dict[tuple[str, str], list[Row]] = {}
        self._lock = Lock()
        try:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                self._take(json.loads(line), path, number)
        except OSError as error:
            raise AgentUnavailableError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise AgentUnavailableError(f"{path} is not a recording made by --loop-record ({error})") from None

    def _take(self, row: Any, path: Path, number: int) -> None:
        if not isinstance(row, dict) or not isinstance(row.get("step"), str):
            raise AgentUnavailableError(f"{path}:{number}: expected a recorded answer, found something else")
        self._answers.setdefault((row["step"], str(row.get("key", ""))), []).append(row)

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:  # noqa: ARG002 - it takes no time
        row = self._next(request)
        if "error" in row:
            raise (AgentUnavailableError if row.get("final") else AgentError)(str(row["error"]))
        try:
            given = row.get("reply", {})
            found = AgentReply.model_validate({name: given[name] for name in AgentReply.model_fields if name in given})
        except (ValidationError, TypeError):
            raise AgentUnavailableError(f"{self.name} holds something for {request.step} that is no answer") from None
        if isinstance(row.get("artifact"), str) and request.artifact is not None:
            request.artifact.write_text(row["artifact"], encoding="utf-8", newline="")
        return found

    def close(self) -> None:
        """Nothing is open."""

    def _next(self, request: AgentRequest) -> Row:
        with self._lock:
            left = self._answers.get((request.step, request.key), [])
            while left:
                row = left.pop(0)
                if row.get("iteration", request.iteration) >= request.iteration:
                    return row
        raise AgentUnavailableError(f"{self.name} has no further answer for {request.step}")


class RecordedAgent:
    """Another agent, whose answers are written down as they come."""

    def __init__(self, agent: Agent, path: Path) -> None:
        self._agent = agent
        self._path = path
        self.name = agent.name
        self.is_serial = agent.is_serial
        try:
            path.open("ab").close()
        except OSError as error:
            raise AgentUnavailableError(f"--loop-record: cannot write {path}: {error.strerror}") from None

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        before = _content(request.artifact)
        row: Row = {"step": request.step, "iteration": request.iteration, "phase": request.phase}
        row |= {"key": request.key} if request.key else {}
        try:
            found = self._agent.answer(request, watch)
        except StopRequestedError:
            raise
        except AgentError as error:
            self._note(row | {"error": str(error), "final": isinstance(error, AgentUnavailableError)})
            raise
        after = _content(request.artifact)
        edited = {"artifact": after} if after is not None and after != before else {}
        self._note(row | {"reply": found.model_dump(mode="json", exclude_defaults=True)} | edited)
        return found

    def close(self) -> None:
        self._agent.close()

    def _note(self, row: Row) -> None:
        try:
            with _WRITING, self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise StateError(f"--loop-record: cannot write {self._path}: {error.strerror}") from None


def _content(path: Path | None) -> str | None:
    return path.read_bytes().decode("utf-8", "replace") if path and path.is_file() else None
