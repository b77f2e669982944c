"""Find the line of a value in a JSON, YAML or TOML text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from pytest_loop.rules.syntax import MAX_DEPTH, ContentError, ValuePath, compose_yaml, construct_yaml, parse
from pytest_loop.rules.toml_lines import find_toml_lines

LineLookup = Callable[[ValuePath], int]


class ParsedText(NamedTuple):
    """The data of a text, an error for each key that occurs twice, and a function that finds lines.

    `find_line` returns the line of the value at a path, or of the innermost existing value around it.
    """

    data: Any
    duplicates: tuple[ContentError, ...]
    find_line: LineLookup


def parse_with_lines(text: str, format_name: str) -> ParsedText:
    """Parse a text, or raise `ContentError`."""
    if format_name == "toml":
        data = parse(text, format_name)
        lines = find_toml_lines(text)
        return ParsedText(data, (), lambda path: _look_up(lines, path))
    try:
        node = compose_yaml(text) if format_name == "yaml" else _compose_json(text)
        duplicates = tuple(_find_duplicates(node, set()))  # before construction, which inserts merged keys
    except RecursionError:
        raise ContentError(1, f"at most {MAX_DEPTH} levels", "deeper nesting") from None
    data = construct_yaml(node, text) if format_name == "yaml" else parse(text, format_name)
    return ParsedText(data, duplicates, lambda path: _find_node_line(node, path))


def _compose_json(text: str) -> yaml.Node | None:
    """Parse JSON as YAML for its line numbers, with tabs and surrogates replaced; return None if YAML refuses it."""
    try:
        return compose_yaml(re.sub(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", r"\\u0020", text.replace("\t", " ")))
    except ContentError:  # malformed JSON, or JSON that YAML cannot read, such as a very long key
        return None


def _find_duplicates(node: yaml.Node | None, visited: set[int]) -> Iterator[ContentError]:
    if not isinstance(node, yaml.CollectionNode) or id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _find_duplicates(child, visited)
        return
    keys: set[str] = set()
    for key, child in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in keys:
                yield ContentError(key.start_mark.line + 1, "each key once", f"{key.value!r} twice")
            keys.add(key.value)
        yield from _find_duplicates(child, visited)


def _find_node_line(node: yaml.Node | None, path: ValuePath) -> int:
    line = node.start_mark.line if node else 0
    for step in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        elif isinstance(node, yaml.MappingNode) and (pair := _find_pair(node, str(step))):
            line, node = pair[0].start_mark.line, pair[1]
        else:
            break
    return line + 1


def _find_pair(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key and its value; the last of equal keys counts, as in the data."""
    return next((pair for pair in reversed(node.value) if str(pair[0].value) == key), None)


def _look_up(lines: dict[ValuePath, int], path: ValuePath) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]
