"""Read JSON, YAML and TOML into plain data, or name the line that is malformed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ValuePath = tuple[str | int, ...]
MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100
MAX_VALUES = 1_000_000
DATA_FORMATS_BY_SUFFIX = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}

_TEXT_TAG = "tag:yaml.org,2002:str"
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ContentError(Exception):
    """Content that differs from what is expected, with the line where it does."""

    def __init__(self, line: int, expected: str, found: str) -> None:
        self.line = line
        self.expected = expected
        self.found = found
        super().__init__(f"expected {expected}, found {found}")


def read_text(path: Path) -> str:
    """Read an untrusted file: at most `MAX_BYTES` of UTF-8; line ends become newlines."""
    try:
        if path.is_dir():
            raise ContentError(1, "a file", "a directory")
        if not path.is_file():
            raise ContentError(1, "a file", "something else" if path.exists() else "none")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ContentError(1, f"at most {MAX_BYTES // 1024**2} MB", f"{size / 1024**2:.1f} MB")
        data = path.read_bytes()
    except OSError as error:
        raise ContentError(1, "a readable file", error.strerror or str(error)) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ContentError(line, "UTF-8 text", f"the byte 0x{data[error.start]:02x}") from None
    return text.replace("\r\n", "\n")


def parse(text: str, format_name: str) -> Any:
    """Return the data in `text`, or raise `ContentError`."""
    try:
        if format_name == "yaml":
            return construct_yaml(compose_yaml(text), text)
        return _parse_json(text) if format_name == "json" else _parse_toml(text)
    except RecursionError:
        raise ContentError(1, f"at most {MAX_DEPTH} levels", "deeper nesting") from None


def validate_syntax(text: str, format_name: str) -> None:
    """Raise `ContentError` unless `text` can be parsed; YAML may hold several documents."""
    start = 0
    for document in re.split(r"^---(?=\s)", text, flags=re.MULTILINE) if format_name == "yaml" else [text]:
        try:
            parse(document, format_name)
        except ContentError as error:
            raise ContentError(start + error.line, error.expected, error.found) from None
        start += document.count("\n")


def stringify_keys(value: Any) -> Any:
    """Make all keys strings, as in JSON: YAML reads a key such as 200 as a number."""
    if isinstance(value, dict):
        return {str(key): stringify_keys(child) for key, child in value.items()}
    return [stringify_keys(child) for child in value] if isinstance(value, list) else value


def _parse_json(text: str) -> Any:
    def reject_constant(name: str) -> Any:
        raise ContentError(_find_line(text, text.find(name)), "a JSON number", name)

    try:
        return json.loads(text, parse_constant=reject_constant)
    except json.JSONDecodeError as error:
        raise ContentError(
            error.lineno, "JSON", f"an error: {_lower_first(error.msg)} in column {error.colno}"
        ) from None
    except ValueError as error:  # a number of more than 4,300 digits
        raise ContentError(1, "JSON", f"an error: {_lower_first(str(error))}") from None


def _parse_toml(text: str) -> Any:
    from pytest_loop.core.text.toml import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = re.search(r"line (\d+)", place)
        raise ContentError(
            int(line[1]) if line else text.count("\n") + 1, "TOML", f"an error: {_lower_first(message)}"
        ) from None
    except ValueError as error:  # a number of more than 4,300 digits
        raise ContentError(1, "TOML", f"an error: {_lower_first(str(error))}") from None


class _BoundedLoader(_Loader):  # type: ignore[valid-type, misc]  # libyaml's loader where it is installed
    """Safe YAML loader that limits nesting: deeper nesting would overflow the stack in C."""

    depth = 0

    # PyYAML's composer calls these two methods around every node, in C and in Python.
    def descend_resolver(self, _node: yaml.Node | None, _index: Any) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RecursionError

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node.tag == _TEXT_TAG and isinstance(node, yaml.ScalarNode):  # most nodes: the base class needs 4 calls
            return node.value
        return super().construct_object(node, deep)


def compose_yaml(text: str) -> yaml.Node | None:
    """Return the node tree of a YAML text; its nodes have line numbers."""
    try:
        return _BoundedLoader(text).get_single_node()  # type: ignore[no-any-return]  # untyped in libyaml's loader
    except yaml.MarkedYAMLError as error:
        raise _describe_yaml_error(error, text) from None
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        raise ContentError(_find_line(text, error.position), "YAML", f"the character U+{code:04X}") from None


def construct_yaml(node: yaml.Node | None, text: str) -> Any:
    """Return the data of a node tree; aliases may not multiply it beyond `MAX_VALUES`."""
    if node is None:
        return None
    if "&" in text and _count_values(node, {}) > MAX_VALUES:
        raise ContentError(1, f"at most {MAX_VALUES:,} values", "aliases that expand to more")
    try:
        return _BoundedLoader("").construct_object(node, deep=True)
    except yaml.MarkedYAMLError as error:
        raise _describe_yaml_error(error, text) from None
    except ValueError as error:  # a date that does not exist, a number of more than 4,300 digits
        raise ContentError(1, "YAML", f"an error: {_lower_first(str(error))}") from None


def _describe_yaml_error(error: yaml.MarkedYAMLError, text: str) -> ContentError:
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    content = [*text.split("\n"), ""][line]
    if "\t" in content[: len(content) - len(content.lstrip())]:
        return ContentError(line + 1, "spaces for indentation", "a tab")
    problem = error.problem or error.context or "something else"
    found, count = re.subn(r"^(but )?found ", "", problem)
    return ContentError(line + 1, "YAML", found if count else f"an error: {problem}")


def _count_values(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count the values below a node with aliases expanded; a node that contains itself exceeds the limit."""
    if id(node) not in sizes:
        sizes[id(node)] = MAX_VALUES + 1
        children = node.value if isinstance(node, yaml.CollectionNode) else ()
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        sizes[id(node)] = 1 + sum(_count_values(child, sizes) for child in children)
    return sizes[id(node)]


def _find_line(text: str, offset: int) -> int:
    return text.count("\n", 0, max(offset, 0)) + 1


def _lower_first(message: str) -> str:
    """Return a message with a lower-case first letter, to put it inside a sentence."""
    return message[:1].lower() + message[1:]
