"""Keep the answer of an agent until its event is in the history, so that no crash makes a second call necessary."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.core.events.event import TypedPayload
from pytest_loop.store import disk


class PendingAnswer(TypedPayload):
    """An answer: its text, and the payload of its event. `after` is the hash of the event before."""

    after: str
    text: str


class PendingAnswerFile:
    """The file of a pending answer."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, answer: PendingAnswer) -> None:
        disk.write_atomically(self._path, json.dumps(answer.model_dump(mode="json")).encode(), durable=False)

    def load(self, last_hash: str) -> PendingAnswer | None:
        """Return the answer that follows the last event, if there is one."""
        with disk.translate_errors("read", self._path):
            data = disk.read_file(self._path)
        try:
            answer = PendingAnswer.model_validate_json(data) if data else None
        except ValidationError:
            return None
        return answer if answer and answer.after == last_hash else None

    def discard_outdated(self, last_hash: str) -> None:
        """Delete an answer that does not follow the last event."""
        if self.load(last_hash) is None:
            disk.remove_file(self._path)
