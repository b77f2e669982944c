"""What a person would have seen: text with control sequences, as a terminal shows it in the end."""

from __future__ import annotations

import re
from collections.abc import Callable

from pytest_loop.core.text.screen import TAB, Screen

# Of a longer line with control characters only the end is looked at: what comes last decides what is to be seen.
LONGEST_LINE = 20_000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Titles, links and words for devices, which are not shown.
_ASIDE = r"[\x1b\x90\x98\x9d-\x9f](?:(?<!\x1b)|[\]PX^_])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
_TOKEN = re.compile(
    r"(?P<run>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])?"
    rf"|{_ASIDE}"
    r"|\x1b[ -/]*(?P<escape>[0-~])?"
    r"|(?P<one>.)"
)
_STYLE = re.compile(r"[\x1b\x9b](?:(?<!\x1b)|\[)([0-9;:]*)m")
_MAY_CONCEAL = re.compile(r"[\x1b\x9b](?:(?<!\x1b)|\[)(?:[0-9;:]*[;:])?0*8[;:m]")
_SECOND_SCREEN = {47, 1047, 1049}


def shown(text: str) -> str:
    """The text as a terminal leaves it: what was erased, overwritten or concealed is gone."""
    if "\x1b" in text and not _MAY_CONCEAL.search(text):
        text = _STYLE.sub("", text)
    if not _CONTROL.search(text):
        return text.expandtabs(TAB)
    screen = Screen()
    for number, line in enumerate(text.split("\n")):
        if number:
            screen.feed()
        _write(screen, line)
    return str(screen)


def _write(screen: Screen, line: str) -> None:
    if screen.is_at_fresh_row and not _CONTROL.search(line):
        screen.put_row(line)
        return
    if len(line) > LONGEST_LINE:
        line = _end(screen, line)
    for token in _TOKEN.finditer(line):
        if token["run"]:
            screen.put(token["run"])
        elif token["final"]:
            _control(screen, token["final"], token["args"])
        elif character := token["escape"] or token["one"]:
            _CHARACTERS.get(character, _ignore)(screen)


def _end(screen: Screen, line: str) -> str:
    line = re.sub(_ASIDE, "", line)
    for style in _STYLE.finditer(line[:-LONGEST_LINE]):
        _style(screen, style[1])
    return line[-LONGEST_LINE:]


def _control(screen: Screen, final: str, args: str) -> None:
    if final == "m":
        _style(screen, args)
        return
    numbers = [int(part[:5]) if part.isdecimal() else 0 for part in args.strip("<=>?").split(";")]
    if final in "hl":
        if _SECOND_SCREEN.intersection(numbers):
            screen.cover() if final == "h" else screen.uncover()
    elif final in "Hf":
        row, column = (*numbers, 1)[:2]
        screen.move_to(max(1, row) - 1, max(1, column) - 1)
    elif final in "JK":
        screen.erase(numbers[0]) if final == "J" else screen.erase_line(numbers[0])
    elif final in _COUNTED:
        _COUNTED[final](screen, max(1, numbers[0]))


def _style(screen: Screen, args: str) -> None:
    """Whether text is visible after these styles; the number of a colour is no style."""
    rest = iter(args.split(";"))
    for style in rest:
        if style in ("38", "48", "58"):
            for _ in range(1 if next(rest, "") == "5" else 3):
                next(rest, "")
        elif style.lstrip("0") in ("", "28"):
            screen.is_concealed = False
        elif style.lstrip("0") == "8":
            screen.is_concealed = True


def _ignore(_screen: Screen) -> None:
    """Nothing that is to be seen."""


# Sequences that do something so many times.
_COUNTED: dict[str, Callable[[Screen, int], None]] = {
    "A": lambda screen, count: screen.move_by(-count),
    "B": lambda screen, count: screen.move_by(count),
    "C": lambda screen, count: screen.move_by(0, count),
    "D": lambda screen, count: screen.move_by(0, -count),
    "E": lambda screen, count: screen.move(screen.row + count, 0),
    "F": lambda screen, count: screen.move(screen.row - count, 0),
    "G": lambda screen, count: screen.move(screen.row, count - 1),
    "`": lambda screen, count: screen.move(screen.row, count - 1),
    "d": lambda screen, count: screen.move_to(count - 1, screen.column),
    "X": Screen.erase_cells,
    "P": Screen.delete_cells,
    "M": Screen.delete_rows,
    "s": lambda screen, _count: screen.save(),
    "u": lambda screen, _count: screen.restore(),
}
# Single control characters, and the letters after an escape.
_CHARACTERS: dict[str, Callable[[Screen], None]] = {
    "\r": lambda screen: screen.move(screen.row, 0),
    "\b": lambda screen: screen.move_by(0, -1),
    "\t": Screen.tab,
    "\v": Screen.feed,
    "\f": Screen.feed,
    "\x85": Screen.feed,
    "D": Screen.feed,
    "E": Screen.feed,
    "M": lambda screen: screen.move_by(-1),
    "7": Screen.save,
    "8": Screen.restore,
    "c": Screen.reset,
}
