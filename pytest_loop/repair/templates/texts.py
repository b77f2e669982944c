"""Texts that are put together wrongly: how a value is written in an f-string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.fstring_positions import find_fields
from pytest_loop.repair.templates.shape import Hints, Template
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_FORMS = (".2f", ".1f", ",", ".0f", "02", "d", ",.2f")
_TURNED = {"<": ">^", ">": "<^", "^": "<>"}


def _format(node: ast.JoinedStr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Another form of a value."""
    text, start = unit.get_code(node), unit.source.get_span(node)[0]
    for _first, middle, last in find_fields(text):
        head, colon, form = text[middle:last].partition(":")
        for other in _other_forms(form):
            yield (TextEdit(start + middle, start + last, f"{head}:{other}" if other else head),)
        if not head:
            yield (TextEdit(start + middle, start + last, f"!r{colon}{form}"),)
        elif head in ("!r", "!s"):
            yield (TextEdit(start + middle, start + last, colon + form),)


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
