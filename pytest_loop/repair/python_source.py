"""A Python file as text and syntax tree, with conversions between positions in both."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from pytest_loop.repair.fstring_positions import place_expressions


class PythonSource:
    """One parsed file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self.lines))]
        self.placed_fstrings = frozenset(
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.JoinedStr)
            and place_expressions(node, self.get_code(node), node.lineno, node.col_offset)
        )
        """The f-strings whose expressions have correct positions."""

    @classmethod
    def read(cls, path: Path, texts: Mapping[str, str]) -> PythonSource | None:
        """Read a file from `texts` or from disk; return None if it is not valid Python."""
        try:
            return cls(path, texts[str(path)] if str(path) in texts else path.read_bytes().decode("utf-8"))
        except (OSError, ValueError, SyntaxError):
            return None

    def get_offset(self, line: int, column: int) -> int:
        """Convert a position in the tree, which counts bytes, to an offset in the text."""
        start = self._starts[line - 1]
        if line > len(self.lines):
            return start
        row = self.lines[line - 1]
        return start + (column if row.isascii() else len(row.encode()[:column].decode("utf-8", "ignore")))

    def get_line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def get_line_start(self, line: int) -> int:
        return self._starts[min(line, len(self._starts)) - 1]

    def get_span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> tuple[int, int]:
        end = self.get_offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return self.get_offset(node.lineno, node.col_offset), end

    def get_code(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        start, end = self.get_span(node)
        return self.text[start:end]
