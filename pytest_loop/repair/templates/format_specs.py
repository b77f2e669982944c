"""Templates for the format of values in f-strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_SPECS = (".2f", ".1f", ",", ".0f", "02", "d", ",.2f")
_OTHER_ALIGNMENTS = {"<": ">^", ">": "<^", "^": "<>"}
_END_OF_FIELD = re.compile(r"\s*(?P<conversion>(?:![rsa])?)(?P<colon>:?)(?P<spec>(?<=:)[^{}\n]*|)\}")


def _change_spec(node: ast.FormattedValue, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Change the format or the conversion of a value."""
    if node.value not in unit.parents:
        return
    field = _END_OF_FIELD.match(unit.source.text, unit.source.get_span(node.value)[1])
    if field is None:
        return
    conversion, colon, spec = field["conversion"], field["colon"], field["spec"]
    texts = [f"{conversion}:{other}" if other else conversion for other in _vary_spec(spec)]
    if not conversion:
        texts.append(f"!r{colon}{spec}")
    elif conversion in ("!r", "!s"):
        texts.append(colon + spec)
    yield from ((TextEdit(field.start("conversion"), field.end("spec"), text),) for text in texts)


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


TEMPLATES = (Template("format", 4, (ast.FormattedValue,), _change_spec),)
