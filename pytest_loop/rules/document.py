"""What content checks read: a file's text, its lines, its data and its Markdown, each made once."""

from __future__ import annotations

import os
import warnings
from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from pytest_loop.errors import CheckError
from pytest_loop.rules.syntax import FORMATS, ContentError, parse, read_text, stringify_keys, validate_syntax

if TYPE_CHECKING:
    from pytest_loop.rules.markdown_document import Block, MarkdownDocument

SUFFIXES = {
    **FORMATS,
    ".py": "python",
    ".pyi": "python",
    ".md": "markdown",
    ".markdown": "markdown",
    ".xml": "xml",
    ".svg": "xml",
}
DATA = ("json", "yaml", "toml")


class Document:
    """One file as it was when it was read."""

    def __init__(self, path: Path, shown: str, text: str, name: str = "") -> None:
        self.path = path
        self.name = name or path.name
        self.shown = shown
        self.text = text
        self._data: dict[tuple[str, str | int | None], Any] = {}

    @cached_property
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def markdown(self) -> MarkdownDocument:
        from pytest_loop.rules.markdown_document import MarkdownDocument

        return MarkdownDocument(self.text)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        while (found := self.text.find("\n", starts[-1])) >= 0:
            starts.append(found + 1)
        return starts

    @property
    def line_count(self) -> int:
        return len(self.text.splitlines())

    def at(self, offset: int) -> str:
        """`file:line` of an offset in the text."""
        return self.line(bisect_right(self._line_starts, offset))

    def line(self, number: int) -> str:
        return f"{self.shown}:{number}"

    def format(self, wanted: str | None) -> str:
        """The format asked for, else the one that the file's name says."""
        found = wanted if wanted not in (None, "auto") else SUFFIXES.get(Path(self.name).suffix.lower())
        if found is None:
            raise CheckError(f"cannot tell the format of {self.shown} from its name: say which with `format:`")
        return found

    def data(self, wanted: str | None, block: str | int | None = None) -> Any:
        """The data in the file or in one of its fenced blocks."""
        kind = self.format(wanted if wanted or block is None else "json" if isinstance(block, int) else block)
        if kind not in DATA:
            raise CheckError(f"cannot query {self.shown}: its format is {kind}, expected one of {', '.join(DATA)}")
        key = (kind, block)
        if key not in self._data:
            self._data[key] = self._parsed(kind, block)
        return self._data[key]

    def _parsed(self, kind: str, block: str | int | None) -> Any:
        if block is None:
            return stringify_keys(parse(self.text, kind))
        first = self.blocks(block)[0]
        try:
            return stringify_keys(parse(first.text, kind))
        except ContentError as error:
            raise ContentError(first.line + error.line - 1, error.expected, error.found) from None

    def blocks(self, wanted: str | int) -> list[Block]:
        """The fenced blocks of a language, or the n-th block; none is not what was asked for."""
        blocks = self.markdown.blocks
        if isinstance(wanted, int):
            found = list(blocks[wanted - 1 : wanted])
            name = f"fenced block number {wanted}"
        else:
            found = [block for block in blocks if block.language == wanted.casefold()]
            name = f"a fenced block of {wanted}"
        if not found:
            raise ContentError(1, name, f"{len(blocks)} fenced blocks" if blocks else "no fenced block")
        return found


_Stamp = tuple[int, int, int, int] | None


def _stamp(path: Path) -> _Stamp:
    """What changes when a file does."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a third of the time of Path.stat, and asked for every rule
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


class Documents:
    """The files read in this session; one that changed on disk is read again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[Path, tuple[_Stamp, Document]] = {}

    def unchanged(self, path: Path) -> Document | None:
        """What was read by this name, if it is still the same file: another one behind a link has another number."""
        known = self._known.get(path)
        return known[1] if known and known[0] == _stamp(path) else None

    def read(self, path: Path, name: str = "", alias: Path | None = None) -> Document:
        """The file at a path that was looked into; `alias` is how the caller names it next time."""
        known = self.unchanged(path) or Document(path, self.shown(path), read_text(path), name)
        for key in (path, alias or path):
            self._known[key] = (_stamp(key), known)
        return known

    def shown(self, path: Path) -> str:
        """The path as a person calls it: from the root of the project."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def find_syntax_error(text: str, kind: str) -> ContentError | None:
    """What keeps `text` from being `kind`, or None."""
    try:
        if kind in DATA:
            validate_syntax(text, kind)
        else:
            {"python": _python, "markdown": _markdown, "xml": _xml}[kind](text)
    except ContentError as error:
        return error
    return None


def _python(text: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "artifact", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ContentError(error.lineno or 1, "Python", error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ContentError(1, "Python", str(error) or "nesting that is too deep") from None


def _markdown(text: str) -> None:
    from pytest_loop.rules.markdown_document import MarkdownDocument

    for block in MarkdownDocument(text).blocks:
        if not block.closed:
            raise ContentError(block.line - 1, "a closing fence", "the end of the text")


def _xml(text: str) -> None:
    def entity(*_: object) -> None:
        raise ContentError(parser.CurrentLineNumber, "XML without entity declarations", "one")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise ContentError(error.lineno, "XML", expat.ErrorString(error.code)) from None
