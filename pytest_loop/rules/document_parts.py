"""Split a document into named parts: sections, keys, functions and classes."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from pytest_loop.core.model.changed_parts import ChangedParts, compare_parts
from pytest_loop.rules.document import DATA_FORMATS, FORMATS_BY_SUFFIX
from pytest_loop.rules.markdown_document import MarkdownDocument
from pytest_loop.rules.syntax import ContentError, parse, stringify_keys

WHOLE = "the whole text"
_BEGINNING = "the beginning"
_MODULE = "the module"


def compare_documents(before: str | None, after: str, name: str) -> ChangedParts:
    """Return the parts that differ between two versions of a document; the suffix of `name` decides the format."""
    if not before:
        return ChangedParts(is_first=True)
    old, new = (split_parts(text, name) for text in (before, after))
    if not old or not new:  # malformed text, or a format without parts
        old, new = {WHOLE: before}, {WHOLE: after}
    return compare_parts(old, new)


def split_parts(text: str, name: str) -> dict[str, str]:
    """Return the parts of a text by name; none for a malformed text or a format without parts."""
    format_name = FORMATS_BY_SUFFIX.get(PurePath(name).suffix.lower())
    try:
        if format_name == "markdown":
            pairs = _iterate_sections(MarkdownDocument(text))
        elif format_name == "python":
            pairs = _iterate_definitions(text)
        elif format_name in DATA_FORMATS:
            pairs = _iterate_keys(stringify_keys(parse(text, format_name)))
        else:
            return {}
        return _join_pairs(pairs)
    except (ContentError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _join_pairs(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Return the parts by name; join those with the same name."""
    parts: dict[str, str] = {}
    for name, text in pairs:
        parts[name] = parts.get(name, "") + text
    return parts


def _iterate_sections(document: MarkdownDocument) -> Iterator[tuple[str, str]]:
    """Yield each heading with its text up to the next heading of any level."""
    lines = document.text.split("\n")
    starts = [section.line for section in document.sections]
    titles = [_BEGINNING, *(section.title or "untitled" for section in document.sections)]
    for title, (start, end) in zip(titles, pairwise([1, *starts, len(lines) + 1]), strict=True):
        if text := "\n".join(lines[start - 1 : end - 1]).strip():
            yield title, text


def _iterate_definitions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the functions and classes of a Python file, and its other statements as one part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    for node in tree.body:
        yield str(getattr(node, "name", _MODULE)), ast.unparse(node)


def _iterate_keys(data: Any) -> Iterator[tuple[str, str]]:
    """Yield the entries of the first two levels of data, such as `paths./courses`."""
    if not isinstance(data, dict):
        yield WHOLE, _dump(data)
        return
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from ((f"{key}.{inner}", _dump(entry)) for inner, entry in value.items())
        else:
            yield key, _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)
