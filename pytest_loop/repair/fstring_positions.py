"""Compute the positions of expressions inside f-strings, which syntax trees lack before Python 3.12."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator

HAS_POSITIONS = sys.version_info >= (3, 12)
_OPENING, _CLOSING = "([{", ")]}"


def place_expressions(node: ast.JoinedStr, text: str, line: int, column: int) -> bool:
    """Set the positions of an f-string's expressions, where `text` begins at the given place; return success."""
    if HAS_POSITIONS:
        return True
    values = [value for value in node.values if isinstance(value, ast.FormattedValue)]
    fields = list(find_fields(text))
    if len(fields) != len(values):
        return False
    for value, (start, end, _) in zip(values, fields, strict=True):
        try:
            inner = ast.parse(f"({text[start:end]})", mode="eval").body
        except SyntaxError:
            return False
        if ast.dump(inner) != ast.dump(value.value):
            return False
        rows = text[:start].split("\n")
        offset = len(rows[-1].encode()) - 1 + (column if len(rows) == 1 else 0)
        _shift_positions(inner, line + len(rows) - 2, offset)
        value.value = inner
    return True


def _shift_positions(tree: ast.expr, lines: int, columns: int) -> None:
    """Move all nodes down by `lines`, and nodes of the first line right by `columns` bytes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.keyword | ast.arg):
            node.col_offset += columns if node.lineno == 1 else 0
            node.end_col_offset = (node.end_col_offset or 0) + (columns if node.end_lineno == 1 else 0)
            node.lineno += lines
            node.end_lineno = (node.end_lineno or 0) + lines


def find_fields(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield for each field of one f-string the start and end of its expression, and the end of the field.

    Yield nothing for implicit concatenations and other texts that are not exactly one string literal.
    """
    if not _is_single_string(text):
        return
    index, end = _find_content(text)
    while index < end:
        if text.startswith(("{{", "}}"), index):
            index += 2
        elif text[index] == "{":
            middle = _find_stop(text, index + 1, end, "!:=}")
            last = _find_stop(text, middle, end, "}")
            yield index + 1, middle, last
            index = last + 1
        else:
            index += 1


def _is_single_string(text: str) -> bool:
    try:
        kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    except (tokenize.TokenError, SyntaxError):
        return False
    if HAS_POSITIONS:
        return kinds[:1] == [tokenize.FSTRING_START] and kinds.count(tokenize.FSTRING_START) == 1  # type: ignore[attr-defined,unused-ignore]
    return kinds == [tokenize.STRING]


def _find_content(text: str) -> tuple[int, int]:
    quote = next(index for index, sign in enumerate(text) if sign in "'\"")
    width = 3 if text.startswith(text[quote] * 3, quote) and len(text) - quote >= 6 else 1
    return quote + width, len(text) - width


def _find_stop(text: str, index: int, end: int, stops: str) -> int:
    """Return the first stop sign outside brackets and strings that is not part of a comparison."""
    depth, quote = 0, ""
    while index < end:
        sign = text[index]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif not depth and text[index : index + 2] in ("!=", "==", "<=", ">="):
            index += 1
        elif not depth and sign in stops:
            return index
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING)
        index += 1
    return end
