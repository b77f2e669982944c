"""The files that content checks read, with their lines, data and Markdown parsed once."""

from __future__ import annotations

import os
import warnings
from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.parsers import expat

from pytest_loop.errors import CheckError
from pytest_loop.rules.markdown_document import FencedBlock, MarkdownDocument
from pytest_loop.rules.syntax import (
    DATA_FORMATS_BY_SUFFIX,
    ContentError,
    parse,
    read_text,
    stringify_keys,
    validate_syntax,
)

FORMATS_BY_SUFFIX = {
    **DATA_FORMATS_BY_SUFFIX,
    ".py": "python",
    ".pyi": "python",
    ".md": "markdown",
    ".markdown": "markdown",
    ".xml": "xml",
    ".svg": "xml",
}
DATA_FORMATS = ("json", "yaml", "toml")


class Document:
    """One file as it was when it was read; `shown` is its path as messages show it."""

    def __init__(self, path: Path, shown: str, text: str) -> None:
        self.path = path
        self.shown = shown
        self.text = text
        self._data: dict[tuple[str, str | int | None], Any] = {}

    @cached_property
    def casefolded(self) -> str:
        return self.text.casefold()

    @cached_property
    def markdown(self) -> MarkdownDocument:
        return MarkdownDocument(self.text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(offset + 1 for offset, character in enumerate(self.text) if character == "\n")]

    def locate(self, offset: int) -> str:
        """Return `file:line` of an offset in the text."""
        return self.line(bisect_right(self._line_starts, offset))

    def line(self, number: int) -> str:
        """Return `file:line` of a line number."""
        return f"{self.shown}:{number}"

    def detect_format(self, requested: str | None) -> str:
        """Return the requested format, or the format of the file's suffix."""
        detected = requested if requested not in (None, "auto") else FORMATS_BY_SUFFIX.get(self.path.suffix.lower())
        if detected is None:
            raise CheckError(f"cannot tell the format of {self.shown} from its name: say which with `format:`")
        return detected

    def load_data(self, requested: str | None, block: str | int | None = None) -> Any:
        """Parse the file, or one of its fenced blocks; keys are strings."""
        if block is not None and not requested:
            requested = "json" if isinstance(block, int) else block
        format_name = self.detect_format(requested)
        if format_name not in DATA_FORMATS:
            formats = ", ".join(DATA_FORMATS)
            raise CheckError(f"cannot query {self.shown}: its format is {format_name}, expected one of {formats}")
        if (format_name, block) not in self._data:
            self._data[format_name, block] = self._parse(format_name, block)
        return self._data[format_name, block]

    def _parse(self, format_name: str, block: str | int | None) -> Any:
        text, start = self.text, 1
        if block is not None:
            fence = self.find_blocks(block)[0]
            text, start = fence.text, fence.line
        try:
            return stringify_keys(parse(text, format_name))
        except ContentError as error:
            raise ContentError(start + error.line - 1, error.expected, error.found) from None

    def find_blocks(self, selector: str | int) -> list[FencedBlock]:
        """Return the fenced blocks of a language, or the n-th block; raise `ContentError` if there is none."""
        blocks = self.markdown.blocks
        if isinstance(selector, int):
            selected = list(blocks[selector - 1 : selector])
            expected = f"fenced block number {selector}"
        else:
            selected = [block for block in blocks if block.language == selector.casefold()]
            expected = f"a fenced block of {selector}"
        if not selected:
            raise ContentError(1, expected, f"{len(blocks)} fenced blocks" if blocks else "no fenced block")
        return selected


class Documents:
    """Cache of the documents of a session; a file that changed on disk is read again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._cache: dict[Path, tuple[tuple[int, ...], Document]] = {}

    def read(self, path: Path, link: Path | None = None) -> Document:
        """Return the document at a path; also cache it for `link`, which leads to that path."""
        if document := self.find_unchanged(path):
            return document
        stamp = _stat(path)
        document = Document(path, self.display_path(path), read_text(path))
        self._cache[path] = self._cache[link or path] = (stamp, document)
        return document

    def find_unchanged(self, path: Path) -> Document | None:
        """Return the cached document of a path, or None if it is not cached or its file was replaced or changed."""
        stamp, document = self._cache.get(path, (None, None))
        return document if stamp and stamp == _stat(path) else None

    def display_path(self, path: Path) -> str:
        """Return the path as messages show it."""
        return format_path(path, self.root)


def format_path(path: Path, root: Path) -> str:
    """Return a path as messages show it: relative to the root if it is inside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _stat(path: Path) -> tuple[int, ...]:
    """Return the time, size, inode and device of a file; empty if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a third of the time of Path.stat, and called for every rule
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def find_syntax_error(text: str, format_name: str) -> ContentError | None:
    """Return the first syntax error of a text in a format, or None."""
    try:
        if format_name in DATA_FORMATS:
            validate_syntax(text, format_name)
        else:
            {"python": _validate_python, "markdown": _validate_markdown, "xml": _validate_xml}[format_name](text)
    except ContentError as error:
        return error
    return None


def _validate_python(text: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "artifact", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ContentError(error.lineno or 1, "Python", error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ContentError(1, "Python", str(error) or "nesting that is too deep") from None


def _validate_markdown(text: str) -> None:
    for block in MarkdownDocument(text).blocks:
        if not block.is_closed:
            raise ContentError(block.line - 1, "a closing fence", "the end of the text")


def _validate_xml(text: str) -> None:
    def reject_entity(*_: object) -> None:
        raise ContentError(parser.CurrentLineNumber, "XML without entity declarations", "one")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = reject_entity
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise ContentError(error.lineno, "XML", expat.ErrorString(error.code)) from None
