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


class Kept(Value):
    """An answer: the text, and the event that will tell of it. `after` is the hash of the event before."""

    after: str
    event: str
    payload: dict[str, Any]
    text: str


class Answer:
    """A file that exists from the answer until its event is in the history."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, kept: Kept) -> None:
        disk.write_whole(self._path, json.dumps(kept.model_dump()).encode(), lasts=False)

    def kept(self, last: str) -> Kept | None:
        """The answer that followed the last event, if there is one."""
        try:
            with disk.told("read", self._path):
                data = disk.content(self._path)
            found = Kept.model_validate_json(data) if data else None
        except ValidationError:
            return None
        return found if found and found.after == last else None

    def forget(self, last: str) -> None:
        """Take away what does not follow the last event."""
        if self.kept(last) is None:
            disk.remove(self._path)

    def is_told_by(self, events: list[Event]) -> bool:
        """Whether one of these events is the one that tells of an answer."""
        return any(event.event in _ANSWERS for event in events)
