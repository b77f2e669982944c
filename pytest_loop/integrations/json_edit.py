"""Change one entry of a JSON text, and leave every other character as it is."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from pytest_loop.errors import LoopError


class BrokenConfigurationError(LoopError):
    """An existing file cannot be read; the message has its path and line."""


@dataclass(frozen=True)
class Entry:
    """A value at a path of keys; with `mark`, it is the item of a list there that contains this text."""

    keys: tuple[str, ...]
    value: Any
    mark: str = ""


def set_entry(text: str, entry: Entry, name: str) -> str:
    """Return the text with this entry; `name` is that of the file, for errors."""
    root = _parse(text or "{}", name)
    text = text if text.strip() else "{}\n"
    node, depth = _follow(root, entry.keys)
    rest = entry.keys[depth:]
    if rest:
        _expect(node, yaml.MappingNode, name, entry.keys[:depth])
        value = [entry.value] if entry.mark else entry.value
        for key in reversed(rest[1:]):
            value = {key: value}
        return _insert(text, node, f"{json.dumps(rest[0])}: ", value, depth)
    if not entry.mark:
        return _replace(text, node, entry.value, depth)
    _expect(node, yaml.SequenceNode, name, entry.keys)
    for item in node.value:
        if entry.mark in _slice(text, item):
            return _replace(text, item, entry.value, depth + 1)
    return _insert(text, node, "", entry.value, depth)


def remove_entry(text: str, entry: Entry, name: str) -> str:
    """Return the text without this entry, and without containers that it leaves empty; empty if nothing is left."""
    if not text.strip():
        return ""
    root = _parse(text, name)
    node, depth = _follow(root, entry.keys)
    if depth < len(entry.keys):
        return text
    if entry.mark:
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        index = next((index for index, item in enumerate(items) if entry.mark in _slice(text, item)), None)
        if index is None:
            return text
        if len(items) > 1:
            return _cut(text, node, index)
    for depth in reversed(range(len(entry.keys))):
        parent, _ = _follow(root, entry.keys[:depth])
        if len(parent.value) > 1:
            names = [key.value for key, _ in parent.value]
            return _cut(text, parent, names.index(entry.keys[depth]))
    return ""


def _parse(text: str, name: str) -> Any:
    """Return the nodes of a JSON text with their positions: JSON is YAML, but for tabs between its parts."""
    try:
        json.loads(text or "{}")
        return yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
    except json.JSONDecodeError as error:
        raise BrokenConfigurationError(f"{name}:{error.lineno}: expected JSON, found {error.msg}") from None
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        raise BrokenConfigurationError(f"{name}:{line}: expected JSON, found {error}") from None


def _follow(node: Any, keys: Sequence[str]) -> tuple[Any, int]:
    """Return the deepest node at a path of keys, and how many of them lead to it."""
    for depth, key in enumerate(keys):
        children = node.value if isinstance(node, yaml.MappingNode) else []
        child = next((value for name, value in children if name.value == key), None)
        if child is None:
            return node, depth
        node = child
    return node, len(keys)


def _expect(node: Any, kind: type[yaml.Node], name: str, keys: Sequence[str]) -> None:
    if not isinstance(node, kind):
        wanted = "an object" if kind is yaml.MappingNode else "a list"
        place = ".".join(keys) or "the top"
        raise BrokenConfigurationError(f"{name}:{node.start_mark.line + 1}: expected {wanted} at {place}")


def _slice(text: str, node: Any) -> str:
    return text[node.start_mark.index : node.end_mark.index]


def _render(value: Any, indent: str, depth: int) -> str:
    return textwrap.indent(json.dumps(value, indent=indent), indent * depth).lstrip()


def _find_indent(text: str) -> str:
    """Return the indentation of a text: that of its first indented line."""
    lines = (line for line in text.splitlines() if line.strip() and line[0] in " \t")
    first = next(lines, "  x")
    return first[: len(first) - len(first.lstrip())]


def _replace(text: str, node: Any, value: Any, depth: int) -> str:
    if json.loads(_slice(text, node)) == value:
        return text
    rendered = _render(value, _find_indent(text), depth)
    return text[: node.start_mark.index] + rendered + text[node.end_mark.index :]


def _insert(text: str, node: Any, prefix: str, value: Any, depth: int) -> str:
    """Add a member after the last one of an object or a list."""
    indent = _find_indent(text)
    member = f"\n{indent * (depth + 1)}{prefix}{_render(value, indent, depth + 1)}"
    if node.value:
        last = node.value[-1]
        end = (last[1] if isinstance(last, tuple) else last).end_mark.index
        return f"{text[:end]},{member}{text[end:]}"
    start = node.start_mark.index + 1
    return f"{text[:start]}{member}\n{indent * depth}{text[node.end_mark.index - 1 :]}"


def _cut(text: str, node: Any, index: int) -> str:
    """Remove a member with the comma before it, or after it if it is the first."""
    spans = [
        (member[0].start_mark.index, member[1].end_mark.index)
        if isinstance(member, tuple)
        else (member.start_mark.index, member.end_mark.index)
        for member in node.value
    ]
    if index:
        return text[: spans[index - 1][1]] + text[spans[index][1] :]
    return text[: spans[0][0]] + text[spans[1][0] :]
