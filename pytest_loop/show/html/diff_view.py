"""Parse unified diffs into lines with numbers and syntax colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup, escape

from pytest_loop.show.html.texts import reveal_lines

ROOM = 2 * 1024 * 1024
# Colours take most of the time and multiply the size: after this many characters of diffs, a page has no colours.
COLOUR_ROOM = 256 * 1024
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_KINDS = {"+": "added", "-": "removed", " ": "same"}
# The first letters of Pygments' short names that get a colour; the rest stays plain.
_COLOURED = ("k", "s", "c", "m", "nb", "nf", "nc", "nd", "nt", "na", "gh", "gu")


@dataclass(frozen=True)
class DiffLine:
    """One line: added, removed, same, or head of a hunk; `number` is in the old file if removed, else the new."""

    kind: str
    number: int | None
    html: Markup


@dataclass(frozen=True)
class FileDiff:
    """The change of one file."""

    path: str
    lines: tuple[DiffLine, ...] = ()

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for line in self.lines)


@dataclass(frozen=True)
class DiffView:
    """The files of a diff; `is_omitted` if the page had no room for it."""

    text: str = ""
    files: tuple[FileDiff, ...] = ()
    added: int = 0
    removed: int = 0
    is_omitted: bool = False


@dataclass
class DiffRenderer:
    """Render the diffs of one page within `room` characters, the first `colour_room` of these in colours."""

    room: int = ROOM
    colour_room: int = COLOUR_ROOM

    def render(self, text: str) -> DiffView:
        """Render a diff; if the page has no room for it, return only the numbers of lines."""
        if not text:
            return DiffView()
        self.colour_room -= len(text)
        files = tuple(_Parser(self.colour_room >= 0).parse(text))
        self.room -= sum(len(line.html) for file in files for line in file.lines)
        view = DiffView(text, files, sum(file.added for file in files), sum(file.removed for file in files))
        return view if self.room >= 0 else replace(view, text="", files=(), is_omitted=True)


@dataclass
class _Hunk:
    """Consecutive lines of one file, and how many lines of the old and the new file are still to come."""

    old: int = 0
    new: int = 0
    old_remaining: int = 0
    new_remaining: int = 0
    lines: list[tuple[str, int | None, str]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.old_remaining > 0 or self.new_remaining > 0

    def add(self, line: str) -> bool:
        """Add a line of code; return False for any other line, which ends the hunk."""
        kind = _KINDS.get(line[:1])
        if kind is None:
            self.old_remaining = self.new_remaining = 0
            return False
        self.lines.append((kind, self.old if kind == "removed" else self.new, line[1:]))
        if kind != "added":
            self.old, self.old_remaining = self.old + 1, self.old_remaining - 1
        if kind != "removed":
            self.new, self.new_remaining = self.new + 1, self.new_remaining - 1
        return True


@dataclass
class _Parser:
    """Split a diff into files; use the length of a hunk to tell a removed line `-- x` from the head of a file."""

    is_coloured: bool
    path: str = ""
    lines: list[DiffLine] = field(default_factory=list)
    hunk: _Hunk = field(default_factory=_Hunk)

    def parse(self, text: str) -> Iterator[FileDiff]:
        for line in text.split("\n"):
            if self.hunk.is_open and self.hunk.add(line):
                continue
            self._finish_hunk()
            if line.startswith("--- "):
                yield from self._finish_file()
                self.path = _strip_prefix(line)
            elif line.startswith("+++ "):
                self.path = _strip_prefix(line) or self.path
            else:
                self._read_head(line)
        self._finish_hunk()
        yield from self._finish_file()

    def _read_head(self, line: str) -> None:
        """Begin a hunk, or keep any other line as a remark."""
        if match := _HUNK.match(line):
            old, old_count, new, new_count = (int(part or 1) for part in match.groups())
            self.hunk = _Hunk(old, new, old_count, new_count)
            line = "⋯" if self.lines else ""
        if line:
            self.lines.append(DiffLine("head", None, escape(reveal_lines(line))))

    def _finish_hunk(self) -> None:
        self.lines.extend(_render_lines(self.hunk.lines, self.path if self.is_coloured else ""))
        self.hunk = _Hunk()

    def _finish_file(self) -> Iterator[FileDiff]:
        if self.lines:
            yield FileDiff(self.path, tuple(self.lines))
        self.lines = []


def _strip_prefix(line: str) -> str:
    """Return the path of a `---` or `+++` line; empty for /dev/null."""
    name = line[4:]
    return "" if name == "/dev/null" else name[2:]


def _render_lines(lines: list[tuple[str, int | None, str]], path: str) -> Iterator[DiffLine]:
    """Colour the lines of a hunk as one text, so that strings over several lines are recognized."""
    texts = [reveal_lines(text) for _, _, text in lines]
    colours = _colour("\n".join(texts), path) if path and lines else None
    for index, (kind, number, _) in enumerate(lines):
        yield DiffLine(kind, number, colours[index] if colours else escape(texts[index]))


def _colour(text: str, path: str) -> list[Markup] | None:
    """Return the lines of a text as markup, or None if the language of the file is unknown."""
    lexer = _find_lexer(path)
    if lexer is None:
        return None
    lines = [Markup("")]
    for name, value in _list_tokens(lexer, text):
        first, *others = value.split("\n")
        lines[-1] += _mark(name, first)
        lines.extend(_mark(name, part) for part in others)
    expected = text.count("\n") + 1
    return lines if len(lines) == expected else None


def _list_tokens(lexer: Any, text: str) -> Iterator[tuple[str, str]]:
    from pygments.token import STANDARD_TYPES

    for kind, value in lexer.get_tokens(text):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        yield STANDARD_TYPES[kind], value


def _mark(name: str, text: str) -> Markup:
    style = next((prefix for prefix in _COLOURED if name.startswith(prefix)), "") if text.strip() else ""
    return Markup('<span class="y-{}">{}</span>').format(style, text) if style else escape(text)


def _find_lexer(path: str) -> Any:
    """Return the lexer for a file name, or None."""
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
