"""Choose the verbosity, width, colours and symbols of output, and format texts by them."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from pytest_loop.core.text.lengths import shorten

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
# Characters that some terminals cannot show, and their replacements.
_PLAIN = str.maketrans({"✓": "ok", "✗": "x", "·": "-", "…": "..."})
# Build servers whose logs show colours.
_COLOURED_LOGS = ("GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "BUILDKITE", "TRAVIS", "TF_BUILD", "APPVEYOR")
_LOG_WIDTH = 120
# Stands for a space at which no line is split.
_FIXED_SPACE = "\0"
_MIN_WIDTH = 40
_MAX_AGENT = 40


@dataclass(frozen=True)
class Look:
    """How much is printed and how it looks; `verbosity` is pytest's: below 0 for `-q`, above for `-v`.

    Only a terminal `wraps` long lines; in a log, each text stays on one line, so that a search finds it.
    """

    verbosity: int = 0
    width: int = _LOG_WIDTH
    is_coloured: bool = False
    has_symbols: bool = True
    has_progress: bool = False
    wraps: bool = False

    def paint(self, text: str, *styles: str) -> str:
        """Return the text in these styles if the output is coloured."""
        if not self.is_coloured or not text or not styles:
            return text
        return f"\x1b[{';'.join(str(_CODES[style]) for style in styles)}m{text}\x1b[0m"

    def adapt(self, text: str) -> str:
        """Replace symbols that this output cannot show."""
        return text if self.has_symbols else text.translate(_PLAIN)

    def draw_mark(self, *, is_good: bool) -> str:
        """Return a green check mark or a red cross."""
        return self.paint("✓", "green", "bold") if is_good else self.paint("✗", "red", "bold")

    def fit(self, text: str, indent: int) -> str:
        """Return the text on one line that fits into the width after an indent."""
        return shorten(text, max(_MIN_WIDTH // 2, self.width - indent))

    def wrap(self, text: str, indent: int = 0) -> list[str]:
        """Split a text into lines at words, if this is a terminal; continued lines are indented."""
        if not self.wraps:
            return [text]
        room, width = max(_MIN_WIDTH, self.width), 0
        lines = [""]
        for word in re.findall(r"^ *\S*|\S+", text):
            size = measure_width(remove_styles(word))
            if lines[-1] and width + 1 + size > room:
                lines.append(" " * indent + word)
                width = indent + size
            else:
                space = " " if lines[-1] else ""
                lines[-1] += space + word
                width += len(space) + size
        return lines

    def join(self, *parts: str) -> str:
        """Join the non-empty parts by dots."""
        return " · ".join(filter(None, parts))

    def wrap_parts(self, *parts: str) -> list[str]:
        """Join parts by dots, and wrap the text; split only parts longer than half the width."""
        texts = (part.replace(" ", _FIXED_SPACE) if len(part) <= self.width // 2 else part for part in parts)
        return [line.replace(_FIXED_SPACE, " ") for line in self.wrap(self.join(*texts), 2)]


def choose_look(stream: TextIO, environment: Mapping[str, str], verbosity: int = 0, colour: str = "auto") -> Look:
    """Choose the look by the stream, `--color`, `NO_COLOR`, `FORCE_COLOR`, `PY_COLORS`, `TERM` and the build server."""
    is_terminal = stream.isatty() and environment.get("TERM") != "dumb"
    is_build = bool(environment.get("CI") or environment.get("BUILD_NUMBER"))
    return Look(
        verbosity,
        shutil.get_terminal_size((_LOG_WIDTH, 24)).columns,
        _is_coloured(environment, colour, is_terminal=is_terminal),
        _can_encode_marks(stream),
        has_progress=is_terminal and not is_build and verbosity > -2,
        wraps=stream.isatty(),
    )


def _is_coloured(environment: Mapping[str, str], colour: str, *, is_terminal: bool) -> bool:
    if colour != "auto":
        return colour == "yes"
    if environment.get("NO_COLOR") or environment.get("PY_COLORS") == "0":
        return False
    if environment.get("FORCE_COLOR") or environment.get("PY_COLORS") == "1":
        return True
    return is_terminal or any(environment.get(name) for name in _COLOURED_LOGS)


def shorten_agent(name: str) -> str:
    """Return the name of an agent; shorten a long command to its head and tail."""
    return name if len(name) <= _MAX_AGENT else f"{name[: _MAX_AGENT // 2]}…{name[-_MAX_AGENT // 2 :]}"


def _can_encode_marks(stream: TextIO) -> bool:
    try:
        "✓✗·…".encode(stream.encoding or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def remove_styles(text: str) -> str:
    """Return the text without the codes of colours and styles."""
    return _STYLE.sub("", text)


def cut_to_width(text: str, width: int) -> str:
    """Cut a text to a number of terminal cells."""
    room = width
    for position, character in enumerate(text):
        room -= measure_width(character)
        if room < 0:
            return text[:position]
    return text


def measure_width(text: str) -> int:
    """Return the number of terminal cells of a text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def format_clock(seconds: float) -> str:
    """Format a duration as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
