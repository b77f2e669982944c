"""Looking into JSON that somebody else wrote: what is not there, or is something else, is unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

Event = dict[str, Any]


def events(text: str) -> Iterator[Event]:
    """The JSON objects that stand on lines of their own; other lines are nobody's business."""
    for line in text.splitlines():
        if (value := an_object(line)) is not None:
            yield value


def an_object(text: str | None) -> Event | None:
    """The object that a text is."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def of_type(found: Iterable[Event], kind: str) -> list[Event]:
    """The events of one type."""
    return [one for one in found if one.get("type") == kind]


def last(found: Iterable[Event]) -> Event:
    """The last event; an empty one where there is none."""
    return [{}, *found][-1]


def at(value: Any, *path: str) -> Any:
    """What stands at a path of keys; None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def members(value: Any) -> list[Any]:
    """What a list or a mapping holds; nothing where it is neither."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def word(value: Any) -> str:
    """A text as it stands; empty where it is none."""
    return value if isinstance(value, str) else ""


def prose(value: Any) -> str | None:
    """A text with something in it."""
    return value if word(value).strip() else None


def number(value: Any) -> Any:
    """A number that may be true of a count or a price."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else None


def sum_at(value: Any, *names: str) -> Any:
    """The numbers under these names together; None where none of them is known."""
    return total(at(value, name) for name in names)


def total(numbers: Iterable[Any]) -> Any:
    """The known numbers together; None where none is known."""
    known = [one for one in map(number, numbers) if one is not None]
    return sum(known) if known else None
