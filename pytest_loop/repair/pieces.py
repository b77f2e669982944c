"""Spans of a text and what stands there instead: comments and spaces elsewhere stay as they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\w+|[^\w\s]""")


@dataclass(frozen=True)
class Piece:
    """A span of a text, and what stands there instead."""

    start: int
    end: int
    text: str


Pieces: TypeAlias = tuple[Piece, ...]


def edited(text: str, pieces: Pieces) -> str:
    """The text with the pieces in their places; all else stays as it is, comments and spaces included."""
    found, last = [], 0
    for piece in sorted(pieces, key=lambda one: one.start):
        found += [text[last : piece.start], piece.text]
        last = piece.end
    return "".join([*found, text[last:]])


def tokens(text: str) -> list[str]:
    """The words, strings and signs of a text."""
    return _TOKEN.findall(text)


def changed_tokens(before: str, after: str) -> int:
    """How many tokens come or go, whichever are more; what is common at both ends does not count."""
    old, new = tokens(before), tokens(after)
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return max(len(old), len(new))
