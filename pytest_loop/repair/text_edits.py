"""Edits of a text as spans with a replacement; everything outside the spans stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\w+|[^\w\s]""")


@dataclass(frozen=True)
class TextEdit:
    """A span of a text and its replacement."""

    start: int
    end: int
    text: str


TextEdits: TypeAlias = tuple[TextEdit, ...]


def apply_edits(text: str, edits: TextEdits) -> str:
    """Return the text with all edits applied."""
    parts, last = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[last : edit.start], edit.text]
        last = edit.end
    return "".join([*parts, text[last:]])


def split_tokens(text: str) -> list[str]:
    """Split a text into words, string literals and operator characters."""
    return _TOKEN.findall(text)


def count_changed_tokens(before: str, after: str) -> int:
    """Return the number of removed or of added tokens, whichever is larger, without common tokens at both ends."""
    old, new = split_tokens(before), split_tokens(after)
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return max(len(old), len(new))
