"""Markdown with words of somebody else in it: nothing of theirs is read as Markdown or HTML of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_loop.core.text.lengths import shorten

LONGEST = 200


def plain(value: object) -> str:
    """Words of somebody else on one line, without what a reader would take for Markdown of ours."""
    return shorten(str(value), LONGEST).replace("<", "&lt;")


def names(cases: Iterable[str]) -> str:
    """All of them: what became worse is never cut."""
    return ", ".join(plain(case) for case in cases)


def code(text: str) -> str:
    """A piece of a file as code; with backticks in it the fence is longer than they are."""
    shown = shorten(text, LONGEST)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else "(nothing)"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; nothing where it would be empty."""
    if not rows:
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
