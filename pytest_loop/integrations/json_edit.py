"""Change one entry of a JSON text, with comments or without, and leave every other character as it is."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from pytest_loop.errors import LoopError

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?=\r?\n)")
_COMMA = re.compile(r"\s*,")


class BrokenConfigurationError(LoopError):
    """An existing file cannot be read; the message has its path and line."""


@dataclass(frozen=True)
class Entry:
    """A value at a path of keys; with `mark`, an item of the list at that path, recognized by this text in it."""

    keys: tuple[str, ...]
    value: Any
    mark: str = ""


def set_entry(text: str, entry: Entry, name: str) -> str:
    """Return the text with this entry; `name` is the name of the file in errors."""
    root = _parse(text or "{}", name)
    text = text if text.strip() else "{}\n"
    node, depth = _find_deepest(root, entry.keys)
    rest = entry.keys[depth:]
    if rest:
        _require_kind(node, yaml.MappingNode, name, entry.keys[:depth])
        value = [entry.value] if entry.mark else entry.value
        for key in reversed(rest[1:]):
            value = {key: value}
        return _insert(text, node, f"{json.dumps(rest[0])}: ", value, depth)
    if not entry.mark:
        return _replace(text, node, entry.value, depth)
    _require_kind(node, yaml.SequenceNode, name, entry.keys)
    for item in node.value:
        if entry.mark in _get_source(text, item):
            return _replace(text, item, entry.value, depth + 1)
    return _insert(text, node, "", entry.value, depth)


def remove_entry(text: str, entry: Entry, name: str) -> str:
    """Return the text without this entry, and without containers that it leaves empty; empty if nothing is left."""
    if not text.strip():
        return ""
    root = _parse(text, name)
    node, depth = _find_deepest(root, entry.keys)
    if depth < len(entry.keys):
        return text
    if entry.mark:
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        index = next((index for index, item in enumerate(items) if entry.mark in _get_source(text, item)), None)
        if index is None:
            return text
        if len(items) > 1:
            return _cut(text, node, index)
    for depth in reversed(range(len(entry.keys))):
        parent, _ = _find_deepest(root, entry.keys[:depth])
        if len(parent.value) > 1:
            names = [key.value for key, _ in parent.value]
            return _cut(text, parent, names.index(entry.keys[depth]))
    return _cut(text, root, 0) if _COMMENT.sub(_blank_match, text) != text else ""


def load_json(text: str) -> Any:
    """Return the value of a JSON text; comments and commas after the last member are ignored."""
    return json.loads(_blank_comments(text))


def _blank_comments(text: str) -> str:
    """Replace comments and commas after the last member by spaces, so that every position stays the same."""
    return _LAST_COMMA.sub(_blank_match, _COMMENT.sub(_blank_match, text))


def _blank_match(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"\S", " ", match[0])


def require_plain_json(text: str, name: str) -> None:
    """Raise `BrokenConfigurationError` for comments and commas after the last member."""
    try:
        json.loads(text if text.strip() else "{}")
    except json.JSONDecodeError as error:
        raise BrokenConfigurationError(f"{name}:{error.lineno}: expected JSON, found {error.msg}") from None


def _parse(text: str, name: str) -> Any:
    """Return the nodes of a JSON text with their positions: JSON is YAML, but for tabs between its parts."""
    try:
        load_json(text or "{}")
        return yaml.compose(_blank_comments(text).replace("\t", " "), Loader=yaml.SafeLoader)
    except json.JSONDecodeError as error:
        raise BrokenConfigurationError(f"{name}:{error.lineno}: expected JSON, found {error.msg}") from None
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        raise BrokenConfigurationError(f"{name}:{line}: expected JSON, found {error}") from None


def _find_deepest(node: Any, keys: Sequence[str]) -> tuple[Any, int]:
    """Follow the keys as far as they exist; return the last node, and the number of keys that were followed."""
    for depth, key in enumerate(keys):
        children = node.value if isinstance(node, yaml.MappingNode) else []
        child = next((value for name, value in children if name.value == key), None)
        if child is None:
            return node, depth
        node = child
    return node, len(keys)


def _require_kind(node: Any, kind: type[yaml.Node], name: str, keys: Sequence[str]) -> None:
    if not isinstance(node, kind):
        expected = "an object" if kind is yaml.MappingNode else "a list"
        place = ".".join(keys) or "the top"
        raise BrokenConfigurationError(f"{name}:{node.start_mark.line + 1}: expected {expected} at {place}")


def _get_source(text: str, node: Any) -> str:
    return text[node.start_mark.index : node.end_mark.index]


def _render(value: Any, indent: str, depth: int) -> str:
    return textwrap.indent(json.dumps(value, indent=indent), indent * depth).lstrip()


def _find_indent(text: str) -> str:
    """Return the indentation of the first indented line of a text."""
    lines = (line for line in text.splitlines() if line.strip() and line[0] in " \t")
    first = next(lines, "  x")
    return first[: len(first) - len(first.lstrip())]


def _replace(text: str, node: Any, value: Any, depth: int) -> str:
    if load_json(_get_source(text, node)) == value:
        return text
    rendered = _render(value, _find_indent(text), depth)
    return text[: node.start_mark.index] + rendered + text[node.end_mark.index :]


def _insert(text: str, node: Any, prefix: str, value: Any, depth: int) -> str:
    """Add a member after the last one of an object or a list, and after a comment that ends its line."""
    indent = _find_indent(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    member = f"\n{indent * (depth + 1)}{prefix}{_render(value, indent, depth + 1)}".replace("\n", newline)
    if not node.value:
        start = node.start_mark.index + 1
        return f"{text[:start]}{member}{newline}{indent * depth}{text[node.end_mark.index - 1 :]}"
    end = _find_span(node.value[-1])[1]
    comma = _COMMA.match(_COMMENT.sub(_blank_match, text), end)
    rest = _REST_OF_LINE.match(_blank_comments(text), end)
    after = max(rest.end() if rest else end, comma.end() if comma else end)
    return text[:end] + ("" if comma else ",") + text[end:after] + member + ("," if comma else "") + text[after:]


def _cut(text: str, node: Any, index: int) -> str:
    """Remove a member with its comma, and its line if nothing else is on it."""
    plain = _COMMENT.sub(_blank_match, text)
    start, end = _find_span(node.value[index])
    before, comma = text[:start].rstrip(" \t"), _COMMA.match(plain, end)
    if comma:
        end = comma.end()
    elif index:
        position = plain.index(",", _find_span(node.value[index - 1])[1])
        before = before[:position] + before[position + 1 :]
    rest = _REST_OF_LINE.match(text, end)
    if rest and before.endswith("\n"):
        return before.removesuffix("\n").removesuffix("\r") + text[rest.end() :]
    if index and text[end : end + 1] in ("]", "}") and "//" not in before.splitlines()[-1]:
        before = before.rstrip()
    return before + text[end:]


def _find_span(member: Any) -> tuple[int, int]:
    """Return the positions of an item of a list, or of a key with its value."""
    first, last = member if isinstance(member, tuple) else (member, member)
    return first.start_mark.index, last.end_mark.index
