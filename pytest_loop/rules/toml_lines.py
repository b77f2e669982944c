"""TOML: its data, and in which line a value stands; loaded by the few sessions that have any."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from pytest_loop.rules.syntax import ContentError, lowered

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path = tuple[str | int, ...]


def read(text: str) -> Any:
    """The data in `text`; raises `Malformed`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = re.search(r"line (\d+)", place)
        raise ContentError(int(line[1]) if line else text.count("\n") + 1, "TOML", lowered(message)) from None
    except ValueError as error:  # a number of more than 4,300 digits
        raise ContentError(1, "TOML", lowered(str(error))) from None


def lines(text: str) -> Callable[[Path], int]:
    """A function from the path of a value to its line."""
    try:
        return _Toml(text).line
    except (ValueError, IndexError):  # valid TOML that the walk does not know; a wrong line would be worse than none
        return lambda _path: 1


_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_BARE = re.compile(r"[^,\]}\n#]+")


class _Toml:
    """Walks a text that is known to be valid TOML, and notes the line of every key and array element."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = (0, 1)
        self.lines: dict[Path, int] = {(): 1}
        self.tables: dict[Path, int] = {}
        here: Path = ()
        while self._skip() < len(text):
            if text.startswith("[[", self.at):
                here = self._header(2)
            elif text[self.at] == "[":
                here = self._header(1)
            else:
                self._pair(here)

    def line(self, path: Path) -> int:
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def _skip(self) -> int:
        self.at = self._match(_SPACE).end()
        return self.at

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"not TOML at offset {self.at}")
        return match

    def _here(self) -> int:
        """The line that the walk has come to; it only goes forward."""
        offset, line = self.counted
        self.counted = (self.at, line + self.text.count("\n", offset, self.at))
        return self.counted[1]

    def _note(self, path: Path) -> None:
        line = self._here()
        for length in range(1, len(path)):
            self.lines.setdefault(path[:length], line)
        self.lines[path] = line

    def _key(self, here: Path) -> Path:
        """The path of a dotted key; a table of an array is the last one that was opened."""
        while True:
            self._skip()
            word = self._match(_KEY)[0]
            self.at += len(word)
            here = (*here, word[1:-1] if word[0] == "'" else json.loads(word) if word[0] == '"' else word)
            if self._skip() < len(self.text) and self.text[self.at] == ".":
                self.at += 1
                if here in self.tables:
                    here = (*here, self.tables[here])
                continue
            return here

    def _header(self, brackets: int) -> Path:
        start = self.at
        self.at += brackets
        here = self._key(())
        end = self.at + brackets
        self.at = start
        if brackets == 2:
            self.tables[here] = self.tables.get(here, -1) + 1
            here = (*here, self.tables[here])
        self._note(here)
        self.at = end
        return here

    def _pair(self, here: Path) -> None:
        start = self.at
        path = self._key(here)
        end, self.at = self.at, start
        self._note(path)
        self.at = end + 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip()
        opening = self.text[self.at]
        if opening == "[":
            self._members("]", lambda index: self._element((*path, index)))
        elif opening == "{":
            self._members("}", lambda _index: self._pair(path))
        else:
            self.at = self._match(_STRING if opening in "\"'" else _BARE).end()

    def _element(self, path: Path) -> None:
        self._note(path)
        self._value(path)

    def _members(self, closing: str, member: Callable[[int], None]) -> None:
        self.at += 1
        index = 0
        while self._skip() < len(self.text) and self.text[self.at] != closing:
            member(index)
            index += 1
            if self.text[self._skip()] == ",":
                self.at += 1
        self.at += 1
