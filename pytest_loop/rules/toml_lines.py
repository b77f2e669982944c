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
    """Yield each token with its line; the last is a newline."""
    line = 1
    for match in _TOKEN.finditer(text):
        yield match[1], line
        line += match[1].count("\n")
    yield "\n", line


class _Scanner:
    """Record the line of each value by recursive descent, without validation: the text must be valid."""

    def __init__(self, text: str) -> None:
        self.lines: dict[ValuePath, int] = {(): 1}
        self._tokens = list(_tokenize(text))
        self._position = 0
        self._last_indices: dict[ValuePath, int] = {}  # by the path of an array of tables
        table: ValuePath = ()
        while self._position < len(self._tokens):
            if self._current_text == "\n":
                self._position += 1
            elif self._current_text == "[":
                table = self._read_header()
            else:
                self._read_pair(table)

    @property
    def _current_text(self) -> str:
        return self._tokens[self._position][0]

    def _record(self, path: ValuePath, line: int) -> None:
        """Record the line of a value, and use it for enclosing tables without a line."""
        for length in range(1, len(path)):
            self.lines.setdefault(path[:length], line)
        self.lines[path] = line

    def _read_key(self, table: ValuePath, end: str) -> ValuePath:
        """Read a dotted key up to `end`; return its path in `table`, with the last index of each array of tables."""
        start = self._position
        while self._current_text != end:
            self._position += 1
        value = parse("".join(token for token, _ in self._tokens[start : self._position]) + " = 0", "toml")
        while isinstance(value, dict):
            if table in self._last_indices:
                table = (*table, self._last_indices[table])
            ((name, value),) = value.items()
            table = (*table, name)
        return table

    def _read_header(self) -> ValuePath:
        line = self._tokens[self._position][1]
        brackets = 2 if self._tokens[self._position + 1][0] == "[" else 1
        self._position += brackets
        table = self._read_key((), "]")
        self._position += brackets
        if brackets == 2:
            self._last_indices[table] = self._last_indices.get(table, -1) + 1
            table = (*table, self._last_indices[table])
        self._record(table, line)
        return table

    def _read_pair(self, table: ValuePath) -> None:
        line = self._tokens[self._position][1]
        path = self._read_key(table, "=")
        self._position += 1
        self._record(path, line)
        self._read_value(path)

    def _read_value(self, path: ValuePath) -> None:
        closing = {"[": "]", "{": "}"}.get(self._current_text)
        if closing:
            self._position += 1
            self._read_members(path, closing)
            return
        while self._current_text not in ("\n", ",", "]", "}"):
            self._position += 1

    def _read_members(self, path: ValuePath, closing: str) -> None:
        index = 0
        while self._current_text != closing:
            if self._current_text in ("\n", ","):
                self._position += 1
            elif closing == "}":
                self._read_pair(path)
            else:
                self._record((*path, index), self._tokens[self._position][1])
                self._read_value((*path, index))
                index += 1
        self._position += 1
