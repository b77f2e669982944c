"""Parse TOML, JSON, YAML and INI files of a project within fixed limits."""

from __future__ import annotations

import configparser
import json
from collections.abc import Callable, Hashable
from pathlib import PurePosixPath
from typing import Any

import yaml

from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.toml import tomllib

MAX_MERGED_KEYS = 10_000
MAX_DEPTH = 50


class UnreadableFile(Exception):  # noqa: N818 - reported as a warning, never as an error
    """A file whose text does not have the format that its name says."""


class LocatedText(str):
    """A string of a YAML file with its line; for a block, the first line of its text."""

    __slots__ = ("line",)
    line: int


# The loader of libyaml is faster, and missing from some installations.
_SafeLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[valid-type, misc]  # chosen when it runs
    """YAML loader that keeps the lines of strings, reads unknown tags as None, and limits depth and merged keys."""

    depth = 0

    # PyYAML calls this and `ascend_resolver` around every node; libyaml would crash the process on a deep document.
    def descend_resolver(self, _node: yaml.Node | None, _index: Any) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.YAMLError(f"more than {MAX_DEPTH} levels")

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def construct_text(self, node: yaml.Node) -> LocatedText:
        text = LocatedText(self.construct_scalar(node))
        is_block = getattr(node, "style", None) in ("|", ">")
        text.line = node.start_mark.line + (2 if is_block else 1)
        return text

    def ignore_tag(self, _suffix: str, _node: yaml.Node) -> None:
        return None

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MAX_MERGED_KEYS:
            raise yaml.YAMLError(f"more than {MAX_MERGED_KEYS:,} keys in one mapping")


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_text)
_Loader.add_multi_constructor("!", _Loader.ignore_tag)


def parse_data(path: str, text: str) -> dict[Hashable, Any]:
    """Return the mapping in a data file, empty if it holds anything else; raise `UnreadableFile` for bad syntax."""
    file = PurePosixPath(path)
    parse = _PARSERS.get(file.suffix.lower() or file.name)
    try:
        data = parse(text) if parse else None
    except (ValueError, RecursionError, yaml.YAMLError, configparser.Error) as error:
        raise UnreadableFile(f"{path} cannot be read: {shorten(str(error))}") from None
    return data if isinstance(data, dict) else {}


def _parse_yaml(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _parse_ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".json": json.loads,
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".ini": _parse_ini,
    ".cfg": _parse_ini,
    ".flake8": _parse_ini,
}


def get_mapping(data: Any, *path: str) -> dict[Any, Any]:
    """Return the mapping at a path of keys, empty if there is none."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def get_list(value: Any) -> list[Any]:
    """Return a list as it is, and an empty list for anything else."""
    return value if isinstance(value, list) else []


def collect_strings(value: Any) -> list[str]:
    """Return a string, or all strings in a list of any depth."""
    if isinstance(value, str):
        return [value]
    return [text for entry in get_list(value) for text in collect_strings(entry)]


def get_line(text: str) -> int:
    """Return the line of a string of a YAML file; 1 for any other string."""
    return text.line if isinstance(text, LocatedText) else 1
