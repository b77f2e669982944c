"""What pytest shows of a failing test, in few lines: its source, what it called, and nothing that was said before."""

from __future__ import annotations

import builtins
import re

from pytest_loop.core.text.lengths import shorten

_MARKED = ">"
_MESSAGE = re.compile(r"E(?:   |$)")
# Lines between frames, marks below a column, and the object that a method belongs to.
_EMPTY = re.compile(r"\s*$|(?:_ )+_?$|\s*[\^~]+$|self = <")
_ENDING = re.compile(r"\S.*:\d+: \w*$")
_CALL = re.compile(r"(?<!\bdef )(?<![\w.])([A-Za-z_][\w.]*)\((?:[rbf]?[\"']([^\"']*))?")
_EVERYWHERE = frozenset(dir(builtins))


def _is_excerpt(lines: list[str]) -> bool:
    """Whether a text is what pytest shows, and not the output of somebody else."""
    return any(line.startswith(_MARKED) for line in lines) and any(_MESSAGE.match(line) for line in lines)


def trim_excerpt(detail: str, said: str) -> str:
    """The lines that explain a failure whose message was `said` already; any other text stays as it is."""
    lines = detail.splitlines()
    if not _is_excerpt(lines):
        return detail
    message = shorten("\n".join(line[1:] for line in lines if _MESSAGE.match(line)), len(detail))
    is_said = message in said
    kept = [line for line in lines if not _EMPTY.match(line) and not (is_said and _MESSAGE.match(line))]
    return "\n".join(kept[:-1] if _ENDING.match(kept[-1]) else kept)


def find_calls(detail: str) -> frozenset[str]:
    """What the source that is shown calls, each with the text it begins with; numbers in it are all one.

    Tests that fail by an assertion after the same calls fail for the same cause more often than not, whatever the
    values were.
    """
    lines = detail.splitlines()
    if not _is_excerpt(lines):
        return frozenset()
    source = "\n".join(line for line in lines if line.startswith((_MARKED, "    ")))
    found = ((call[1], re.sub(r"\d+", "#", call[2] or "")) for call in _CALL.finditer(source))
    return frozenset(f"{name}({text}" for name, text in found if name not in _EVERYWHERE)
