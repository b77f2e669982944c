"""Read JSON of unknown structure: values that are missing or of another type are empty or None."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pytest_loop.core.model.run_state import sum_known

ClientEvent = dict[str, Any]  # one JSON object that a client printed


def read_events(text: str) -> list[ClientEvent]:
    """Return the JSON objects that stand on lines of their own; other lines are skipped."""
    return [event for line in text.splitlines() if (event := parse_object(line)) is not None]


def parse_object(text: str | None) -> ClientEvent | None:
    """Return the JSON object in a text; None if the text is anything else."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def select_type(events: Iterable[ClientEvent], kind: str) -> list[ClientEvent]:
    """Return the events of one type."""
    return [event for event in events if event.get("type") == kind]


def find_last(events: Iterable[ClientEvent], kind: str) -> ClientEvent:
    """Return the last event of one type, or an empty one."""
    return [{}, *select_type(events, kind)][-1]


def get_at(value: Any, *path: str) -> Any:
    """Return the value at a path of keys; None if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def list_members(value: Any) -> list[Any]:
    """Return the members of a list or the values of a mapping; an empty list for anything else."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def get_text(value: Any, *path: str) -> str:
    """Return the text at a path of keys; empty if there is none."""
    text = get_at(value, *path)
    return text if isinstance(text, str) else ""


def get_nonblank_text(value: Any, *path: str) -> str | None:
    """Return the text at a path of keys; None if it is blank or missing."""
    text = get_text(value, *path)
    return text if text.strip() else None


def get_number(value: Any, *path: str) -> Any:
    """Return the number at a path of keys; None if it is missing or negative."""
    number = get_at(value, *path)
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) and number >= 0 else None


def sum_at(value: Any, *names: str) -> Any:
    """Return the sum of the numbers at these keys, or None if there is none."""
    return sum_known(get_number(value, name) for name in names)
