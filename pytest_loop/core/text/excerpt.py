"""Excerpts that pytest prints of failing tests, reduced to the lines that explain the failure."""

from __future__ import annotations

import builtins
import re

from pytest_loop.core.text.lengths import shorten

_FAILED_LINE = ">"
_MESSAGE = re.compile(r"E(?:   |$)")
# Lines to leave out: blank ones and those between frames, marks below a column, and the instance of a test class.
_NOISE = re.compile(r"\s*$|(?:_ )+_?$|\s*[\^~]+$|self = <")
_LOCATION = re.compile(r"\S.*:\d+: \w*$")
_CALL = re.compile(r"(?<!\bdef )(?<![\w.])([A-Za-z_][\w.]*)\((?:[rbf]?[\"']([^\"']*))?")
_BUILTINS = frozenset(dir(builtins))


def _is_excerpt(lines: list[str]) -> bool:
    return any(line.startswith(_FAILED_LINE) for line in lines) and any(_MESSAGE.match(line) for line in lines)


def trim_excerpt(detail: str, message: str) -> str:
    """Keep the lines that explain a failure beyond its message; text that is no excerpt stays unchanged."""
    lines = detail.splitlines()
    if not _is_excerpt(lines):
        return detail
    is_repeated = shorten("\n".join(line[1:] for line in lines if _MESSAGE.match(line)), len(detail)) in message
    rest = [line for line in lines if not _NOISE.match(line) and not (is_repeated and _MESSAGE.match(line))]
    return "\n".join(rest[:-1] if _LOCATION.match(rest[-1]) else rest)


def find_calls(detail: str) -> frozenset[str]:
    """Return the calls in the shown source, each with the start of a text argument; digits are replaced.

    Assertions that fail after the same calls mostly have the same cause, whatever the values are.
    """
    lines = detail.splitlines()
    if not _is_excerpt(lines):
        return frozenset()
    source = "\n".join(line for line in lines if line.startswith((_FAILED_LINE, "    ")))
    calls = ((call[1], re.sub(r"\d+", "#", call[2] or "")) for call in _CALL.finditer(source))
    return frozenset(f"{name}({text}" for name, text in calls if name not in _BUILTINS)
