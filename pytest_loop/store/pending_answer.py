"""What an agent answered, on its way into artifact and history: a crash in between costs no second question."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.core.events.event import Event, TypedPayload
from pytest_loop.core.events.run_payloads import EditPayload
from pytest_loop.store import disk


class PendingAnswer(TypedPayload):
    """An answer: its text, and the payload of its event. `after` is the hash of the event before."""

    after: str
    text: str

    @classmethod
    def create(cls, after: str, payload: EditPayload, text: str) -> PendingAnswer:
        return cls(after=after, event=payload.kind.value if payload.kind else "", payload=payload, text=text)


class PendingAnswerFile:
    """A file that exists from the answer until its event is in the history."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, kept: PendingAnswer) -> None:
        disk.write_atomically(self._path, json.dumps(kept.model_dump(mode="json")).encode(), durable=False)

    def load(self, last: str) -> PendingAnswer | None:
        """The answer that followed the last event, if there is one."""
        try:
            with disk.translate_errors("read", self._path):
                data = disk.read_file(self._path)
            found = PendingAnswer.model_validate_json(data) if data else None
        except ValidationError:
            return None
        return found if found and found.after == last else None

    def discard_outdated(self, last: str) -> None:
        """Take away what does not follow the last event."""
        if self.load(last) is None:
            disk.remove_file(self._path)

    def is_told_by(self, events: list[Event]) -> bool:
        """Whether one of these events is the one that tells of an answer."""
        return any(isinstance(event.payload, EditPayload) for event in events)
