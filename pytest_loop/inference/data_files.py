"""The data in the files of a project: bounded, with lines where they are needed, and never an exception but one."""

from __future__ import annotations

import configparser
import json
import sys
from collections.abc import Callable, Hashable
from pathlib import PurePosixPath
from typing import Any

import yaml

from pytest_loop.core.text.lengths import shorten

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_MERGED = 10_000
DEEPEST = 50


class UnreadableFile(Exception):  # noqa: N818 - a value on its way to a warning, never shown as an error
    """A file that is not what its name says."""


class LocatedText(str):
    """A text of a YAML file that knows its line; that of a block is the first line of what it says."""

    __slots__ = ("line",)
    line: int


_Safe: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[valid-type, misc]  # libyaml's loader where there is one
    """Texts keep their lines, tags of other programs mean nothing, and nothing is deep or multiplies without end."""

    depth = 0

    # Called around every node; the C loader would end the process on a deep document.
    def descend_resolver(self, _node: yaml.Node | None, _index: Any) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.YAMLError(f"more than {DEEPEST} levels")

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def construct_text(self, node: yaml.Node) -> LocatedText:
        text = LocatedText(self.construct_scalar(node))
        is_block = getattr(node, "style", None) in ("|", ">")
        text.line = node.start_mark.line + (2 if is_block else 1)
        return text

    def construct_nothing(self, _suffix: str, _node: yaml.Node) -> None:
        return None

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            raise yaml.YAMLError(f"more than {MOST_MERGED:,} keys in one mapping")


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_text)
_Loader.add_multi_constructor("!", _Loader.construct_nothing)


def parse_data(path: str, text: str) -> dict[Hashable, Any]:
    """The mapping in a file of data, empty where there is none; raises `Unreadable`."""
    reader = _reader(path)
    try:
        data = reader(text) if reader else None
    except (ValueError, RecursionError, yaml.YAMLError, configparser.Error) as error:
        raise UnreadableFile(f"{path} cannot be read: {shorten(str(error))}") from None
    return data if isinstance(data, dict) else {}


def _reader(path: str) -> Callable[[str], Any] | None:
    return _BY_NAME.get(PurePosixPath(path).name) or _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def _yaml(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


_BY_SUFFIX: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".json": json.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".ini": _ini,
    ".cfg": _ini,
}
_BY_NAME: dict[str, Callable[[str], Any]] = {".flake8": _ini}


def get_mapping(data: Any, *path: str) -> dict[Any, Any]:
    """The mapping at a path of keys; empty where there is none, or something else."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def get_list(value: Any) -> list[Any]:
    """A list; empty where it is something else."""
    return value if isinstance(value, list) else []


def collect_strings(value: Any) -> list[str]:
    """A text, or the texts in a list of any depth."""
    if isinstance(value, str):
        return [value]
    return [text for one in get_list(value) for text in collect_strings(one)]


def get_line(text: str) -> int:
    """The line of a text that came from a YAML file; the first where it has none."""
    return text.line if isinstance(text, LocatedText) else 1
