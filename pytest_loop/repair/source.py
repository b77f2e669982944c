"""Python source as text and tree at once, and the way from a place in one to a place in the other."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from pytest_loop.repair.fstrings import placed


class Source:
    """One file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self.lines))]
        texts = (one for one in ast.walk(self.tree) if isinstance(one, ast.JoinedStr))
        self.placed = frozenset(one for one in texts if placed(one, self.code(one), one.lineno, one.col_offset))
        """The f-strings whose expressions are known to be where their nodes say."""

    @classmethod
    def read(cls, path: Path, texts: Mapping[str, str]) -> Source | None:
        """A file as it is, or as `texts` have it; None where it cannot be read as Python."""
        try:
            return cls(path, texts[str(path)] if str(path) in texts else path.read_bytes().decode("utf-8"))
        except (OSError, ValueError, SyntaxError):
            return None

    def offset(self, line: int, column: int) -> int:
        """Where a place of the tree is in the text; the tree counts bytes."""
        start = self._starts[line - 1]
        if line > len(self.lines):
            return start
        row = self.lines[line - 1]
        return start + (column if row.isascii() else len(row.encode()[:column].decode("utf-8", "ignore")))

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def start_of(self, line: int) -> int:
        """Where a line begins."""
        return self._starts[min(line, len(self._starts)) - 1]

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> tuple[int, int]:
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return self.offset(node.lineno, node.col_offset), end

    def code(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        start, end = self.span(node)
        return self.text[start:end]
