"""What an agent answered, on its way into artifact and history: a crash in between costs no second question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.store import disk

_ANSWERS = (Kind.ARTIFACT_CREATED.value, Kind.REFINEMENT_DONE.value)


class PendingAnswer(Value):
    """An answer: the text, and the event that will tell of it. `after` is the hash of the event before."""

    after: str
    event: str
    payload: dict[str, Any]
    text: str


class PendingAnswerFile:
    """A file that exists from the answer until its event is in the history."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, kept: PendingAnswer) -> None:
        disk.write_atomically(self._path, json.dumps(kept.model_dump()).encode(), durable=False)

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
        return any(event.event in _ANSWERS for event in events)
