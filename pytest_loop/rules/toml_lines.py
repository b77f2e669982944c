"""Find the line of every key and array element in TOML, which `tomllib` does not report."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_loop.rules.syntax import ValuePath, parse

_TOKEN = re.compile(
    r"""(?:[ \t\r]|\#[^\n]*)*  # between tokens
    (\"{3}(?:[^\\]|\\.)*?\"{3,5} | '{3}.*?'{3,5} | "(?:[^"\\\n]|\\.)*" | '[^'\n]*'  # strings
    | [\[\]{},=\n] | [^\s\[\]{},=\#"']+)""",
    re.DOTALL | re.VERBOSE,
)


def find_toml_lines(text: str) -> dict[ValuePath, int]:
    """Return the line of each value by its path; `text` must be valid TOML."""
    return _Scanner(text).lines


def _tokenize(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        yield match[1], line
        line += match[1].count("\n")
    yield "\n", line


class _Scanner:
    """Recursive descent over the tokens; the text is known to be valid, so every shape is assumed."""

    def __init__(self, text: str) -> None:
        self.lines: dict[ValuePath, int] = {(): 1}
        self._symbols = list(_tokenize(text))
        self._at = 0
        self._last_indices: dict[ValuePath, int] = {}  # of arrays of tables
        table: ValuePath = ()
        while self._at < len(self._symbols):
            if self._symbol == "\n":
                self._at += 1
            elif self._symbol == "[":
                table = self._read_header()
            else:
                self._read_pair(table)

    @property
    def _symbol(self) -> str:
        return self._symbols[self._at][0]

    def _record(self, path: ValuePath, line: int) -> None:
        for length in range(1, len(path)):
            self.lines.setdefault(path[:length], line)
        self.lines[path] = line

    def _read_key(self, table: ValuePath, end: str) -> ValuePath:
        """Read a dotted key up to `end`; a step into an array of tables leads to its last table."""
        start = self._at
        while self._symbol != end:
            self._at += 1
        value = parse("".join(token for token, _ in self._symbols[start : self._at]) + " = 0", "toml")
        while isinstance(value, dict):
            if table in self._last_indices:
                table = (*table, self._last_indices[table])
            ((name, value),) = value.items()
            table = (*table, name)
        return table

    def _read_header(self) -> ValuePath:
        line = self._symbols[self._at][1]
        brackets = 2 if self._symbols[self._at + 1][0] == "[" else 1
        self._at += brackets
        table = self._read_key((), "]")
        self._at += brackets
        if brackets == 2:
            self._last_indices[table] = self._last_indices.get(table, -1) + 1
            table = (*table, self._last_indices[table])
        self._record(table, line)
        return table

    def _read_pair(self, table: ValuePath) -> None:
        line = self._symbols[self._at][1]
        path = self._read_key(table, "=")
        self._at += 1
        self._record(path, line)
        self._read_value(path)

    def _read_value(self, path: ValuePath) -> None:
        closing = {"[": "]", "{": "}"}.get(self._symbol)
        if closing:
            self._at += 1
            self._read_members(path, closing)
            return
        while self._symbol not in ("\n", ",", "]", "}"):
            self._at += 1

    def _read_members(self, path: ValuePath, closing: str) -> None:
        index = 0
        while self._symbol != closing:
            if self._symbol in ("\n", ","):
                self._at += 1
            elif closing == "}":
                self._read_pair(path)
            else:
                self._record((*path, index), self._symbols[self._at][1])
                self._read_value((*path, index))
                index += 1
        self._at += 1
