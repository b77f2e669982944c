"""Templates for regular expressions: quantifiers, character classes, escapes, anchors, groups and flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_FUNCTIONS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_LITERAL = re.compile(r"""[rR]?(?P<quote>\"{3}|'{3}|\"|')(?P<body>.*)(?P=quote)""", re.DOTALL)
# One part of a pattern: an escape, a character class, the start of a group, a quantifier, or one character.
_PART = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P<\w+>|<[=!]|[:=!]))?|\{\d*,?\d*\}\??|[*+?]\??|.", re.DOTALL
)
_ESCAPES = {
    r"\d": (r"\w", "."),
    r"\w": (r"\S", r"[\w-]"),
    r"\s": (" ", r"\S"),
    r"\S": (r"\w", "."),
    ".": (r"\.", r"\S"),
}
_USUAL_SIGNS = "-_.,:;/+ ()"
_FLAGS = ("IGNORECASE", "MULTILINE", "DOTALL")


def _change_pattern(node: ast.Constant, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Change one part of a pattern."""
    if not _is_pattern(node, unit):
        return
    literal = _LITERAL.fullmatch(unit.get_code(node))
    if literal is None:
        return
    start = unit.source.get_span(node)[0] + literal.start("body")
    body = literal["body"]
    parts = list(_PART.finditer(body))
    edits = [*_vary_parts(parts, hints), *_vary_ends(body)]
    edits.sort(key=lambda edit: not _is_likely(body[edit[0] : edit[1]], edit[2], hints))
    for at, end, text in edits:
        if _is_valid(literal[0][: literal.start("body")] + body[:at] + text + body[end:] + literal["quote"]):
            yield (TextEdit(start + at, start + end, text),)


def _is_likely(before: str, after: str, hints: Hints) -> bool:
    """Return whether a change is common: another quantifier, or a class extended by a character of the tests."""
    if before[:1] in "*+?{":
        return True
    return before.startswith("[") and after[-2:-1] in hints.signs


def _is_valid(literal: str) -> bool:
    try:
        re.compile(ast.literal_eval(literal))
    except (ValueError, SyntaxError, TypeError, re.error, RecursionError, OverflowError):
        return False
    return True


def _is_pattern(node: ast.Constant, unit: EditUnit) -> bool:
    parent = unit.get_parent(node)
    if not isinstance(node.value, str) or not isinstance(parent, ast.Call | ast.Assign | ast.Tuple):
        return False
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "attr", "") in _FUNCTIONS and parent.args[:1] == [node]
    return unit.get_code(node)[:1] in "rR"


_Change = tuple[int, int, str]


def _vary_parts(parts: list[re.Match[str]], hints: Hints) -> Iterator[_Change]:
    """Yield changes of single parts, each as start, end and new text."""
    for index, part in enumerate(parts):
        text, (start, end) = part[0], part.span()
        following = parts[index + 1][0] if index + 1 < len(parts) else ""
        if text[0] in "*+?{" and index:
            yield from ((start, end, other) for other in _vary_quantifier(text))
        elif text[0] == "(" or text in "|^$":
            yield from ((start, end, other) for other in _vary_group(text))
        else:
            yield from ((start, end, other) for other in _vary_atom(text, hints))
            if following[:1] not in ("*", "+", "?", "{") and text[0] in "\\[).":
                yield from ((end, end, other) for other in "?+*")


def _vary_quantifier(text: str) -> Iterator[str]:
    is_lazy = len(text) > 1 and text.endswith("?")
    base = text[:-1] if is_lazy else text
    yield base if is_lazy else f"{base}?"
    if base in "*+?":
        yield from (other for other in "*+?" if other != base)
    for number in re.finditer(r"\d+", base):
        for other in (int(number[0]) + 1, int(number[0]) - 1):
            if other >= 0:
                yield f"{base[: number.start()]}{other}{base[number.end() :]}"
    yield ""


def _vary_group(text: str) -> Iterator[str]:
    yield from {"(": ("(?:",), "(?:": ("(", "(?="), "(?=": ("(?!",), "(?!": ("(?=",)}.get(text, ())
    if text in ("^", "$"):
        yield ""


def _vary_atom(text: str, hints: Hints) -> Iterator[str]:
    """Yield other escapes or classes for a part that matches a single character."""
    yield from _ESCAPES.get(text, ())
    if text.startswith("["):
        yield from _vary_class(text, hints)
    elif len(text) == 2 and not text[1].isalnum():
        yield text[1]


def _vary_class(text: str, hints: Hints) -> Iterator[str]:
    """Yield variants of a character class: more or fewer characters, other digits, or negated."""
    inner = text[1:-1]
    caret, inner = ("^", inner[1:]) if inner.startswith("^") else ("", inner)
    for sign in dict.fromkeys((*hints.signs, *_USUAL_SIGNS)):
        if sign not in inner and sign not in "\"'\\":
            yield f"[{caret}{inner}{chr(92) if sign in '-]^' else ''}{sign}]"
    for digit in re.finditer(r"\d", inner):
        for other in (int(digit[0]) + 1, int(digit[0]) - 1):
            if 0 <= other <= 9:
                yield f"[{caret}{inner[: digit.start()]}{other}{inner[digit.end() :]}]"
    yield from (f"[{caret}{inner}{more}]" for more in (r"\w", r"\s", "A-Z", "a-z", "0-9") if more not in inner)
    yield f"[{inner}]" if caret else f"[^{inner}]"
    for part in re.finditer(r"\\.|.-.|.", inner):
        rest = inner[: part.start()] + inner[part.end() :]
        if rest:
            yield f"[{caret}{rest}]"


def _vary_ends(body: str) -> Iterator[_Change]:
    """Yield anchors and lookarounds at the start and the end of a pattern."""
    end = len(body)
    for text in ("^", r"\b", r"(?<!\w)", r"(?<!\\)"):
        if not body.startswith(text):
            yield 0, 0, text
    for text in ("$", r"\b", r"(?!\w)", r"\Z"):
        if not body.endswith(text):
            yield end, end, text


def _add_flag(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Add a flag to a call of `re`."""
    function = node.func
    if (
        not isinstance(function, ast.Attribute)
        or unit.get_code(function.value) != "re"
        or function.attr not in _FUNCTIONS
    ):
        return
    end = unit.source.get_span(node)[1] - 1
    code = unit.get_code(node)
    name = "" if function.attr in ("compile", "match", "fullmatch", "search") else "flags="
    yield from ((TextEdit(end, end, f", {name}re.{flag}"),) for flag in _FLAGS if flag not in code)


TEMPLATES = (
    Template("regex", 14, (ast.Constant,), _change_pattern),
    Template("regex", 5, (ast.Call,), _add_flag),
)
