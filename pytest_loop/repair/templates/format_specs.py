"""Templates for the format of values in f-strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.fstring_positions import find_fields
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_SPECS = (".2f", ".1f", ",", ".0f", "02", "d", ",.2f")
_OTHER_ALIGNMENTS = {"<": ">^", ">": "<^", "^": "<>"}


def _change_spec(node: ast.JoinedStr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Change the format or the conversion of a value."""
    text, start = unit.get_code(node), unit.source.get_span(node)[0]
    for _start, middle, last in find_fields(text):
        head, colon, spec = text[middle:last].partition(":")
        for other in _vary_spec(spec):
            yield (TextEdit(start + middle, start + last, f"{head}:{other}" if other else head),)
        if not head:
            yield (TextEdit(start + middle, start + last, f"!r{colon}{spec}"),)
        elif head in ("!r", "!s"):
            yield (TextEdit(start + middle, start + last, colon + spec),)


def _vary_spec(spec: str) -> Iterator[str]:
    if not re.search(r"[a-z%]$", spec):
        yield from (spec + other for other in _SPECS)
    if re.search(r"[xXeEgG]$", spec):
        yield spec[:-1] + spec[-1].swapcase()
    for index, char in enumerate(spec):
        yield from (spec[:index] + other + spec[index + 1 :] for other in _OTHER_ALIGNMENTS.get(char, ""))
    for number in re.finditer(r"\d+", spec):
        for other in (int(number[0]) + 1, int(number[0]) - 1):
            yield f"{spec[: number.start()]}{other}{spec[number.end() :]}"
    if spec:
        yield ""


TEMPLATES = (Template("format", 4, (ast.JoinedStr,), _change_spec),)
