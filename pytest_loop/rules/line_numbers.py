"""In which line of a JSON, YAML or TOML text a value stands; asked only when there is something to say about it."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml

from pytest_loop.rules.syntax import compose

Path = tuple[str | int, ...]
LineLookup = Callable[[Path], int]


def build_line_lookup(text: str, kind: str, node: yaml.Node | None = None) -> LineLookup:
    """A function from the path of a value to its line; for what is not there, the line of what encloses it."""
    if kind == "toml":
        from pytest_loop.rules.toml_lines import lines

        return lines(text)
    node = node or _composed(_as_yaml(text) if kind == "json" else text)
    return lambda path: _line(node, path)


def _as_yaml(text: str) -> str:
    """JSON with the two things replaced that YAML does not take; the lines stay the same."""
    return re.sub(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", r"\\u0020", text.replace("\t", " "))


def _composed(text: str) -> yaml.Node | None:
    try:
        return compose(text)
    except (yaml.YAMLError, RecursionError):  # a JSON text that YAML cannot read, such as one with a very long key
        return None


def _line(node: yaml.Node | None, path: Path) -> int:
    line = node.start_mark.line if node else 0
    for step in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        elif isinstance(node, yaml.MappingNode) and (pair := _pair(node, str(step))):
            line, node = pair[0].start_mark.line, pair[1]
        else:
            break
    return line + 1


def _pair(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next((pair for pair in reversed(node.value) if str(pair[0].value) == key), None)
