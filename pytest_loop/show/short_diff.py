"""Shorten a unified diff to a few removed and added lines with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.show.look import Look

MAX_LINES = 12
_INDENT = 7
_MAX_PLACE = 40
_STYLES = {"-": "red", "+": "green", "@": "dim"}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


class ChangedLine(NamedTuple):
    """A line that was removed or added; `place` is set on the first line of each change."""

    place: str
    sign: str
    text: str


def render_short_diff(diff: str, look: Look, limit: int = MAX_LINES) -> Iterator[str]:
    """Render at most `limit` changed lines, each change with its file and line."""
    lines = list(parse_changes(diff))
    shown = lines[:limit]
    width = min(_MAX_PLACE, max((len(line.place) for line in shown), default=0))
    texts = [f"{line.sign} {reveal_hidden(line.text)}" for line in shown]
    # In a narrow terminal, each place is on a separate line.
    is_narrow = look.wraps and _INDENT + width + 2 + max(map(len, texts), default=0) > look.width
    for line, text in zip(shown, texts, strict=True):
        if is_narrow and line.place:
            yield " " * _INDENT + look.fit(line.place, _INDENT)
        head = " " * _INDENT + ("" if is_narrow else shorten(line.place, _MAX_PLACE).ljust(width)) + "  "
        room = max(20, look.width - len(head))
        text = text if len(text) <= room else f"{text[: room - 1]}…"
        yield head + look.paint(text, "red" if line.sign == "-" else "green")
    if len(lines) > limit:
        yield " " * _INDENT + f"… {len(lines) - limit:,} more lines: pytest-loop diff"


def paint_diff(diff: str, look: Look) -> Iterator[str]:
    """Render a whole unified diff in colours."""
    for line in diff.splitlines():
        style = "bold" if line.startswith(("--- ", "+++ ")) else _STYLES.get(line[:1], "")
        yield look.paint(reveal_hidden(line), *filter(None, (style,)))


def parse_changes(diff: str) -> Iterator[ChangedLine]:
    """Yield the removed and added lines of a unified diff."""
    path, number, old, new, is_new_change = "", 0, 0, 0, True
    for line in diff.splitlines():
        if hunk := _HUNK.match(line):
            number, old, new = int(hunk[1]), int(hunk[2] or 1), int(hunk[3] or 1)
            is_new_change = True
        elif line.startswith("[... "):  # the diff omits the rest of this file
            old = new = 0
        elif not old and not new:  # outside hunks, only names of files matter
            path = line[6:] if line.startswith(("--- a/", "+++ b/")) else path
        elif line[:1] in ("-", "+"):
            is_removed = line[0] == "-"
            yield ChangedLine(f"{path}:{max(1, number)}" if is_new_change else "", line[0], line[1:])
            number, old, new = number + is_removed, old - is_removed, new - (not is_removed)
            is_new_change = False
        elif line.startswith(" "):
            number, old, new, is_new_change = number + 1, old - 1, new - 1, True
