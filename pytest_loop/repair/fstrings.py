"""Where expressions stand inside of f-strings, which Python's own trees do not say before 3.12."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator

ARE_PLACED = sys.version_info >= (3, 12)
_OPENING, _CLOSING = "([{", ")]}"


def placed(node: ast.JoinedStr, text: str, line: int, column: int) -> bool:
    """Give the expressions of an f-string their places: its text begins there; whether that could be done."""
    if ARE_PLACED:
        return True
    values = [one for one in node.values if isinstance(one, ast.FormattedValue)]
    found = list(fields(text))
    if len(found) != len(values):
        return False
    for value, (start, end, _) in zip(values, found, strict=True):
        try:
            inner = ast.parse(f"({text[start:end]})", mode="eval").body
        except SyntaxError:
            return False
        if ast.dump(inner) != ast.dump(value.value):
            return False
        above = text[:start].split("\n")
        offset = len(above[-1].encode()) - 1 + (column if len(above) == 1 else 0)
        _move(inner, line + len(above) - 2, offset)
        value.value = inner
    return True


def _move(tree: ast.expr, lines: int, columns: int) -> None:
    """Everything so many lines down, and what is on the first line so many bytes to the right."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.keyword | ast.arg):
            node.col_offset += columns if node.lineno == 1 else 0
            node.end_col_offset = (node.end_col_offset or 0) + (columns if node.end_lineno == 1 else 0)
            node.lineno += lines
            node.end_lineno = (node.end_lineno or 0) + lines


def fields(text: str) -> Iterator[tuple[int, int, int]]:
    """The fields of one f-string: where the expression of each begins and ends, and where the field does.

    Nothing where the text is anything but one string with single quotes at its ends, or three.
    """
    if not _is_one_string(text):
        return
    at, end = _inside(text)
    while at < end:
        if text.startswith(("{{", "}}"), at):
            at += 2
        elif text[at] == "{":
            middle = _scan(text, at + 1, end, "!:=}")
            last = _scan(text, middle, end, "}")
            yield at + 1, middle, last
            at = last + 1
        else:
            at += 1


def _is_one_string(text: str) -> bool:
    try:
        found = [one.type for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.string.strip()]
    except (tokenize.TokenError, SyntaxError):
        return False
    if ARE_PLACED:
        return found[:1] == [tokenize.FSTRING_START] and found.count(tokenize.FSTRING_START) == 1  # type: ignore[attr-defined,unused-ignore]
    return found == [tokenize.STRING]


def _inside(text: str) -> tuple[int, int]:
    quote = next(at for at, sign in enumerate(text) if sign in "'\"")
    width = 3 if text.startswith(text[quote] * 3, quote) and len(text) - quote >= 6 else 1
    return quote + width, len(text) - width


def _scan(text: str, at: int, end: int, stops: str) -> int:
    """The first of some signs that stands in no brackets and no string; a comparison is no sign."""
    depth, quote = 0, ""
    while at < end:
        sign = text[at]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif not depth and text[at : at + 2] in ("!=", "==", "<=", ">="):
            at += 1
        elif not depth and sign in stops:
            return at
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING)
        at += 1
    return end
