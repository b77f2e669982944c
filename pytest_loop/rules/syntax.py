"""From the bytes of a JSON, YAML or TOML file to plain data, or to a line that says what is wrong."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100
MAX_VALUES = 1_000_000
FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}

_TEXT, _LIST, _MAPPING = (f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ContentError(Exception):
    """Text that is not what it should be, with the line where that shows."""

    def __init__(self, line: int, expected: str, found: str) -> None:
        self.line = line
        self.expected = expected
        self.found = found
        super().__init__(f"expected {expected}, found {found}")


def read_text(path: Path) -> str:
    """The text of a file that somebody else wrote: bounded, UTF-8, line ends made one."""
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


def parse(text: str, kind: str) -> Any:
    """The data in `text`."""
    return parse_with_nodes(text, kind, [])[0]


def validate_syntax(text: str, kind: str) -> None:
    """Raise `Malformed` unless `text` can be read; a YAML text may hold several documents."""
    if kind != "yaml":
        parse(text, kind)
        return
    start = 0
    for document in re.split(r"^---(?=\s)", text, flags=re.MULTILINE):
        try:
            parse(document, kind)
        except ContentError as error:
            raise ContentError(start + error.line, error.expected, error.found) from None
        start += document.count("\n")


def stringify_keys(value: Any) -> Any:
    """As JSON has it: in YAML a key such as 200 is a number, and means the same."""
    if isinstance(value, dict):
        return {str(key): stringify_keys(child) for key, child in value.items()}
    return [stringify_keys(child) for child in value] if isinstance(value, list) else value


def parse_with_nodes(text: str, kind: str, twice: list[ContentError]) -> tuple[Any, yaml.Node | None]:
    """The data in `text` with the nodes it came from, which only YAML has.

    Keys that stand twice are added to `twice`; TOML never has them.
    """
    try:
        if kind == "yaml":
            return _yaml(text, twice)
        return (_json(text, twice) if kind == "json" else _toml(text)), None
    except RecursionError:
        raise ContentError(1, f"at most {MAX_DEPTH} levels", "deeper nesting") from None


def _json(text: str, twice: list[ContentError]) -> Any:
    def constant(name: str) -> Any:
        raise ContentError(_line(text, text.find(name)), "a JSON number", name)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(items)
        if len(data) != len(items):
            names = [name for name, _ in items]
            doubles = dict.fromkeys(name for name in names if names.count(name) > 1)
            twice.extend(
                ContentError(_line_of_second(text, name), "each key once", f"{name!r} twice") for name in doubles
            )
        return data

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise ContentError(error.lineno, "JSON", f"{lowered(error.msg)} in column {error.colno}") from None
    except ValueError as error:  # a number of more than 4,300 digits
        raise ContentError(1, "JSON", lowered(str(error))) from None


def _line_of_second(text: str, key: str) -> int:
    """The second of the two nearest places where `key` stands as a key: the pair in one object."""
    starts = [match.start() for match in re.finditer(re.escape(json.dumps(key)) + r"\s*:", text)]
    pairs = list(itertools.pairwise(starts))
    return _line(text, min(pairs, key=lambda pair: pair[1] - pair[0])[1]) if pairs else 1


def _toml(text: str) -> Any:
    from pytest_loop.rules.toml_lines import read

    return read(text)


class _Reader(_Loader):  # type: ignore[valid-type, misc]  # libyaml's loader where there is one
    """Refuses what can hurt: deep nesting, aliases that multiply, tags that mean objects, keys that stand twice."""

    twice: list[ContentError]
    depth = 0

    # The composer calls these two around every node, C or not; a deep document would end the process in C.
    def descend_resolver(self, _node: yaml.Node | None, _index: Any) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RecursionError

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: tuple[bool, bool]) -> Any:
        """The tag of a node; of most words the first letter says that they are text, and nothing else."""
        if kind is yaml.ScalarNode and not (implicit[0] and value[:1] in self.yaml_implicit_resolvers):
            return _TEXT
        return super().resolve(kind, value, implicit)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        self._note_twice(node)
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]

    def _note_twice(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                self.twice.append(ContentError(key.start_mark.line + 1, "each key once", f"{key.value!r} twice"))
            seen.add(key.value)

    def value(self, node: yaml.Node) -> Any:
        """What a node without aliases stands for: the constructor takes three times as long for what most files are."""
        if _is_text(node):
            return node.value
        if isinstance(node, yaml.SequenceNode) and node.tag == _LIST:
            return [self.value(child) for child in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING and all(_is_text(key) for key, _ in node.value):
            made = {key.value: self.value(child) for key, child in node.value}
            if len(made) != len(node.value):
                self._note_twice(node)
            return made
        return self.construct_object(node, deep=True)


def _is_text(node: yaml.Node) -> bool:
    return node.tag == _TEXT and isinstance(node, yaml.ScalarNode)


def compose(text: str) -> yaml.Node | None:
    """The node tree of a YAML text: the values with their lines."""
    return _Reader(text).get_single_node()  # type: ignore[no-any-return]


def _yaml(text: str, twice: list[ContentError]) -> tuple[Any, yaml.Node | None]:
    try:
        reader = _Reader(text)
        reader.twice = twice
        node = reader.get_single_node()
        if node is None:
            return None, None
        if "&" not in text:
            return reader.value(node), node
        if _expanded(node, {}) > MAX_VALUES:
            raise ContentError(1, f"at most {MAX_VALUES:,} values", "aliases that expand to more")
        return reader.construct_document(node), node
    except yaml.MarkedYAMLError as error:
        raise _yaml_problem(error, text) from None
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        raise ContentError(_line(text, error.position), "YAML", f"the character U+{code:04X}") from None
    except ValueError as error:  # a date that does not exist, a number of more than 4,300 digits
        raise ContentError(1, "YAML", lowered(str(error))) from None


def _yaml_problem(error: yaml.MarkedYAMLError, text: str) -> ContentError:
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    indentation = re.match(r"\s*", ([*text.split("\n"), ""])[line])
    if "\t" in (indentation[0] if indentation else ""):
        return ContentError(line + 1, "spaces for indentation", "a tab")
    problem = error.problem or error.context or "something else"
    return ContentError(line + 1, "YAML", re.sub(r"^(but )?found ", "", problem))


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values `node` stands for once its aliases are followed; an alias of itself never ends."""
    known = sizes.get(id(node))
    if known is None:
        sizes[id(node)] = MAX_VALUES + 1
        if isinstance(node, yaml.MappingNode):
            known = 1 + sum(_expanded(child, sizes) for pair in node.value for child in pair)
        elif isinstance(node, yaml.SequenceNode):
            known = 1 + sum(_expanded(child, sizes) for child in node.value)
        else:
            known = 1
        sizes[id(node)] = known
    return known


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, max(offset, 0)) + 1


def lowered(message: str) -> str:
    """A message of a library as a part of a sentence."""
    return message[:1].lower() + message[1:]
