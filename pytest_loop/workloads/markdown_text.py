"""Write untrusted text into Markdown so that none of it is read as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_loop.core.text.lengths import shorten

MAX_LENGTH = 200


def escape(value: object) -> str:
    """Return a value on one line, shortened, with HTML tags escaped."""
    return shorten(str(value), MAX_LENGTH).replace("<", "&lt;")


def end_sentence(text: str) -> str:
    """Add a full stop to a text that does not end with a punctuation mark."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def join_names(cases: Iterable[str]) -> str:
    """Return all names in one line: a list of regressions must never be cut."""
    return ", ".join(map(escape, cases))


def format_code(text: str) -> str:
    """Return a text as inline code, in a fence that is longer than the backticks in it."""
    shown = shorten(text, MAX_LENGTH)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else "(nothing)"


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; none without rows."""
    if not rows:
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
