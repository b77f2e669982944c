"""Change one entry of a JSON file; all others keep their values and their order."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pytest_loop.errors import LoopError


class BrokenConfigurationError(LoopError):
    """An existing file cannot be read; the message has its path and line."""


@dataclass(frozen=True)
class Entry:
    """A value at a path of keys; with `mark`, it is the item of a list there that contains this text."""

    keys: tuple[str, ...]
    value: Any
    mark: str = ""


def load_json(text: str, name: str) -> dict[str, Any]:
    """Return the object in a JSON text, an empty one for an empty text; `name` is that of the file, for errors."""
    try:
        data = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise BrokenConfigurationError(
            f"{name}:{error.lineno}: expected JSON without comments, found {error.msg}"
        ) from None
    _expect(data, dict, name, ())
    return data


def set_entry(text: str, entry: Entry, name: str) -> str:
    """Return the text with this entry."""
    data = load_json(text, name)
    before = deepcopy(data)
    *parents, last = entry.keys
    node: Any = data
    for depth, key in enumerate(parents, 1):
        node = node.setdefault(key, {})
        _expect(node, dict, name, entry.keys[:depth])
    if entry.mark:
        items = node.setdefault(last, [])
        _expect(items, list, name, entry.keys)
        index = _find_marked(items, entry.mark)
        items[slice(len(items), None) if index is None else slice(index, index + 1)] = [entry.value]
    else:
        node[last] = entry.value
    return _render(data, text) if data != before or not text.strip() else text


def remove_entry(text: str, entry: Entry, name: str) -> str:
    """Return the text without this entry, and without containers that it leaves empty; empty if nothing is left."""
    data = load_json(text, name)
    if not _remove(data, entry.keys, entry.mark):
        return text
    return _render(data, text) if data else ""


def _remove(node: Any, keys: tuple[str, ...], mark: str) -> bool:
    """Remove an entry below a node, and containers that it leaves empty; return whether it was there."""
    if not keys:
        index = _find_marked(node, mark) if mark and isinstance(node, list) else None
        if index is not None:
            del node[index]
        return index is not None
    if not isinstance(node, dict) or keys[0] not in node:
        return False
    child = node[keys[0]]
    is_last = len(keys) == 1 and not mark
    if not is_last and not _remove(child, keys[1:], mark):
        return False
    if is_last or not child:
        del node[keys[0]]
    return True


def _expect(value: Any, kind: type[dict[str, Any]] | type[list[Any]], name: str, keys: tuple[str, ...]) -> None:
    if not isinstance(value, kind):
        wanted = "an object" if kind is dict else "a list"
        raise BrokenConfigurationError(f"{name}: expected {wanted} at {'.'.join(keys) or 'the top'}")


def _find_marked(items: list[Any], mark: str) -> int | None:
    return next((index for index, item in enumerate(items) if mark in json.dumps(item, ensure_ascii=False)), None)


def _render(data: Any, text: str) -> str:
    """Return data as JSON, indented like a text: as far as its first indented line."""
    first = next((line for line in text.splitlines() if line.strip() and line[0] in " \t"), "  x")
    return json.dumps(data, indent=first[: len(first) - len(first.lstrip())], ensure_ascii=False) + "\n"
