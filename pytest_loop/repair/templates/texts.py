"""Texts that are put together wrongly: how a value is written in an f-string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_loop.repair.fstrings import fields
from pytest_loop.repair.pieces import Piece, Pieces
from pytest_loop.repair.templates.shape import Hints, Template
from pytest_loop.repair.unit import Unit

_FORMS = (".2f", ".1f", ",", ".0f", "02", "d", ",.2f")
_TURNED = {"<": ">^", ">": "<^", "^": "<>"}


def _format(node: ast.JoinedStr, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """Another form of a value."""
    text, start = unit.code(node), unit.source.span(node)[0]
    for _first, middle, last in fields(text):
        head, colon, form = text[middle:last].partition(":")
        for other in _other_forms(form):
            yield (Piece(start + middle, start + last, f"{head}:{other}" if other else head),)
        if not head:
            yield (Piece(start + middle, start + last, f"!r{colon}{form}"),)
        elif head in ("!r", "!s"):
            yield (Piece(start + middle, start + last, colon + form),)


def _other_forms(form: str) -> Iterator[str]:
    if not re.search(r"[a-z%]$", form):
        yield from (form + other for other in _FORMS)
    for at, sign in enumerate(form):
        yield from (form[:at] + other + form[at + 1 :] for other in _TURNED.get(sign, ""))
    for number in re.finditer(r"\d+", form):
        for other in (int(number[0]) + 1, int(number[0]) - 1):
            yield f"{form[: number.start()]}{other}{form[number.end() :]}"
    if form:
        yield ""


TEMPLATES = (Template("format", 4, (ast.JoinedStr,), _format),)
