"""A small terminal emulator, which finds the text that is visible after control sequences."""

from __future__ import annotations

import re
from collections.abc import Callable

HEIGHT = 100
WIDTH = 500  # the cursor stops here unless the text of a row is longer
TAB = 8
# Only the end of a longer line with control characters is emulated, which bounds the time.
MAX_LINE_LENGTH = 20_000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Titles, links and device strings are never displayed.
_STRING = r"[\x1b\x90\x98\x9d-\x9f](?:(?<!\x1b)|[\]PX^_])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])?"
    rf"|{_STRING}"
    r"|\x1b[ -/]*(?P<escape>[0-~])?"
    r"|(?P<control>.)"
)
_STYLE = re.compile(r"[\x1b\x9b](?:(?<!\x1b)|\[)([0-9;:]*)m")
_CONCEAL = re.compile(r"[\x1b\x9b](?:(?<!\x1b)|\[)(?:[0-9;:]*[;:])?0*8[;:m]")
_ALTERNATE_SCREEN = {47, 1047, 1049}


def render_visible_text(text: str) -> str:
    """Return the text that a terminal shows in the end, without what was erased, overwritten or concealed."""
    if "\x1b" in text and not _CONCEAL.search(text):
        text = _STYLE.sub("", text)
    if not _CONTROL.search(text):
        return text.expandtabs(TAB)
    screen = _Screen()
    for number, line in enumerate(text.split("\n")):
        if number:
            screen.feed_line()
        screen.emulate(line)
    return "\n".join([*screen.scrolled, *map("".join, screen.rows)])


class _Screen:
    """The last HEIGHT rows; older rows have scrolled away and cannot change any more."""

    def __init__(self) -> None:
        self.scrolled: list[str] = []
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self.is_concealed = False
        self.saved_cursor = (0, 0)
        # Scrolled rows, visible rows and cursor of the primary screen while the alternate screen is shown.
        self.primary: tuple[int, list[list[str]], tuple[int, int]] | None = None

    def emulate(self, line: str) -> None:
        if len(line) > MAX_LINE_LENGTH and _CONTROL.search(line):
            line = re.sub(_STRING, "", line)
            for style in _STYLE.finditer(line[:-MAX_LINE_LENGTH]):
                self.set_style(style[1])
            line = line[-MAX_LINE_LENGTH:]
        for token in _TOKEN.finditer(line):
            if token["text"]:
                self.write(token["text"])
            elif token["final"] == "m":
                self.set_style(token["args"])
            elif token["final"] in _SEQUENCES:
                args = [int(part[:5]) if part.isdecimal() else 0 for part in token["args"].strip("<=>?").split(";")]
                _SEQUENCES[token["final"]](self, max(1, args[0]), args)
            elif (char := token["escape"] or token["control"]) in _CHARACTERS:
                _CHARACTERS[char](self)

    def write(self, text: str) -> None:
        cells, end = self.rows[self.row], self.column + len(text)
        cells.extend(" " * (self.column - len(cells)))
        cells[self.column : end] = " " * len(text) if self.is_concealed else text
        self.column = end

    def set_style(self, args: str) -> None:
        """Conceal or reveal the following text; the numbers of a colour are skipped."""
        styles = iter(args.split(";"))
        for style in styles:
            if style in ("38", "48", "58"):
                for _ in range(1 if next(styles, "") == "5" else 3):
                    next(styles, "")
            elif style.lstrip("0") in ("", "28"):
                self.is_concealed = False
            elif style.lstrip("0") == "8":
                self.is_concealed = True

    def feed_line(self) -> None:
        self.row += 1
        self.column = 0
        if self.row == len(self.rows):
            self.rows.append([])
        if len(self.rows) > HEIGHT:
            self.scrolled.append("".join(self.rows.pop(0)))
            self.row -= 1

    def move(self, row: int, column: int) -> None:
        self.row = min(max(0, row), len(self.rows) - 1)
        self.column = min(max(0, column), max(WIDTH, self.column))

    def save_cursor(self) -> None:
        self.saved_cursor = (self.row, self.column)

    def erase_cells(self, start: int, end: int) -> None:
        cells = self.rows[self.row]
        cells[start:end] = " " * len(cells[start:end])

    def erase_line(self, mode: int) -> None:
        """Erase from the cursor (0), to the cursor (1), or all (2)."""
        if mode == 1:
            self.erase_cells(0, self.column + 1)
        else:
            del self.rows[self.row][0 if mode == 2 else self.column :]

    def erase_screen(self, mode: int) -> None:
        """Erase from the cursor (0), to the cursor (1), or all."""
        self.erase_line(min(mode, 2))
        if mode != 1:
            del self.rows[self.row + 1 :]
        if mode:
            self.rows[: self.row] = [[] for _ in range(self.row)]

    def delete_cells(self, count: int) -> None:
        del self.rows[self.row][self.column : self.column + count]

    def delete_rows(self, count: int) -> None:
        del self.rows[self.row : self.row + count]
        if self.row == len(self.rows):
            self.rows.append([])

    def switch(self, modes: list[int], is_alternate: bool) -> None:
        """Show the alternate screen, or remove it and restore the primary one."""
        if not _ALTERNATE_SCREEN.intersection(modes) or is_alternate == (self.primary is not None):
            return
        if self.primary is None:
            self.primary = (len(self.scrolled), self.rows, (self.row, self.column))
            self.scrolled += map("".join, self.rows)
            self.rows, self.row, self.column = [[]], 0, 0
        else:
            count, self.rows, cursor = self.primary
            self.primary = None
            del self.scrolled[count:]
            self.move(*cursor)

    def reset(self) -> None:
        self.erase_screen(2)
        self.move(0, 0)
        self.is_concealed = False


# Sequences by their last letter; each gets its count and all of its arguments.
_SEQUENCES: dict[str, Callable[[_Screen, int, list[int]], None]] = {
    "A": lambda screen, count, _: screen.move(screen.row - count, screen.column),
    "B": lambda screen, count, _: screen.move(screen.row + count, screen.column),
    "C": lambda screen, count, _: screen.move(screen.row, screen.column + count),
    "D": lambda screen, count, _: screen.move(screen.row, screen.column - count),
    "E": lambda screen, count, _: screen.move(screen.row + count, 0),
    "F": lambda screen, count, _: screen.move(screen.row - count, 0),
    "G": lambda screen, count, _: screen.move(screen.row, count - 1),
    "`": lambda screen, count, _: screen.move(screen.row, count - 1),
    "d": lambda screen, count, _: screen.move(count - 1, screen.column),
    "H": lambda screen, count, args: screen.move(count - 1, (*args, 1)[1] - 1),
    "f": lambda screen, count, args: screen.move(count - 1, (*args, 1)[1] - 1),
    "J": lambda screen, _, args: screen.erase_screen(args[0]),
    "K": lambda screen, _, args: screen.erase_line(args[0]),
    "X": lambda screen, count, _: screen.erase_cells(screen.column, screen.column + count),
    "P": lambda screen, count, _: screen.delete_cells(count),
    "M": lambda screen, count, _: screen.delete_rows(count),
    "h": lambda screen, _, args: screen.switch(args, is_alternate=True),
    "l": lambda screen, _, args: screen.switch(args, is_alternate=False),
    "s": lambda screen, *_: screen.save_cursor(),
    "u": lambda screen, *_: screen.move(*screen.saved_cursor),
}
# Control characters, and letters after an escape character.
_CHARACTERS: dict[str, Callable[[_Screen], None]] = {
    "\r": lambda screen: screen.move(screen.row, 0),
    "\b": lambda screen: screen.move(screen.row, screen.column - 1),
    "\t": lambda screen: screen.move(screen.row, screen.column + TAB - screen.column % TAB),
    **dict.fromkeys("\v\f\x85DE", _Screen.feed_line),
    "M": lambda screen: screen.move(screen.row - 1, screen.column),
    "7": _Screen.save_cursor,
    "8": lambda screen: screen.move(*screen.saved_cursor),
    "c": _Screen.reset,
}
