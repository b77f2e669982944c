"""Record the answers of an agent (`--loop-record FILE`), and replay them (`replay:FILE`)."""

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
_WRITE_LOCK = Lock()


class ReplayAgent:
    """Return the recorded answers to each step and question in recorded order.

    A resumed run skips the answers of earlier iterations.
    """

    def __init__(self, file: str, root: Path, name: str = "") -> None:
        self.name = name or f"replay:{file}"
        path = root / file
        self._answers: dict[tuple[str, str], list[Row]] = {}
        self._lock = Lock()
        try:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                self._add_row(json.loads(line), path, number)
        except OSError as error:
            raise AgentUnavailableError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise AgentUnavailableError(f"{path} is not a recording made by --loop-record ({error})") from None

    def _add_row(self, row: Any, path: Path, number: int) -> None:
        if not isinstance(row, dict) or not isinstance(row.get("step"), str):
            raise AgentUnavailableError(f"{path}:{number}: expected a recorded answer, found something else")
        self._answers.setdefault((row["step"], str(row.get("key", ""))), []).append(row)

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:  # noqa: ARG002 - replaying takes no time
        row = self._pop_answer(request)
        if isinstance(row.get("artifact"), str) and request.artifact is not None:
            request.artifact.write_text(row["artifact"], encoding="utf-8", newline="")
        if "error" in row:
            raise (AgentUnavailableError if row.get("final") else AgentError)(str(row["error"]))
        try:
            fields = row.get("reply", {})
            return AgentReply.model_validate({name: fields[name] for name in AgentReply.model_fields if name in fields})
        except (ValidationError, TypeError):
            raise AgentUnavailableError(f"{self.name} holds something for {request.step} that is no answer") from None

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _pop_answer(self, request: AgentRequest) -> Row:
        with self._lock:
            rows = self._answers.get((request.step, request.key), [])
            while rows:
                row = rows.pop(0)
                if row.get("iteration", request.iteration) >= request.iteration:
                    return row
        raise AgentUnavailableError(f"{self.name} has no further answer for {request.step}")


class RecordedAgent:
    """Append the answers of another agent to a file."""

    def __init__(self, agent: Agent, path: Path) -> None:
        self._agent = agent
        self._path = path
        self.name = agent.name
        try:
            path.open("ab").close()
        except OSError as error:
            raise AgentUnavailableError(f"--loop-record: cannot write {path}: {error.strerror}") from None

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        before = _read_text(request.artifact)
        row: Row = {"step": request.step, "iteration": request.iteration, "phase": request.phase}
        row |= {"key": request.key} if request.key else {}
        try:
            reply = self._agent.answer(request, watch)
        except StopRequestedError:
            raise
        except AgentError as error:
            is_final = isinstance(error, AgentUnavailableError)
            self._write_row(row | {"error": str(error), "final": is_final} | _find_edit(request.artifact, before))
            raise
        edit = _find_edit(request.artifact, before)
        self._write_row(row | {"reply": reply.model_dump(mode="json", exclude_defaults=True)} | edit)
        return reply

    def close(self) -> None:
        self._agent.close()

    def _write_row(self, row: Row) -> None:
        try:
            with _WRITE_LOCK, self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise StateError(f"--loop-record: cannot write {self._path}: {error.strerror}") from None


def _find_edit(path: Path | None, before: str | None) -> Row:
    after = _read_text(path)
    return {"artifact": after} if after is not None and after != before else {}


def _read_text(path: Path | None) -> str | None:
    return path.read_bytes().decode("utf-8", "replace") if path and path.is_file() else None
