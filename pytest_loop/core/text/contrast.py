"""Find the expected and the found value in the message of a failing test."""

from __future__ import annotations

import re
from typing import NamedTuple

# pytest's own assertions, those of unittest, and what runners of other languages print.
_PATTERNS = (
    re.compile(r"(?:^|: )assert (?P<found>\S.*?) == (?P<expected>\S.*)$", re.MULTILINE),
    re.compile(r"(?:^|: )AssertionError: (?P<found>\S.*?) != (?P<expected>\S.*)$", re.MULTILINE),
    re.compile(
        r"^\s*Expected:[ \t]*(?P<expected>\S.*)\n\s*(?:Received|Actual|Found|Got):[ \t]*(?P<found>\S.*)$",
        re.MULTILINE | re.IGNORECASE,
    ),
)


class Contrast(NamedTuple):
    """Two values of which one is wrong."""

    expected: str
    found: str


def find_contrast(text: str) -> Contrast | None:
    """Return the first pair of values that a failure message compares, or None if it compares none."""
    matches = filter(None, (pattern.search(text) for pattern in _PATTERNS))
    match = min(matches, key=lambda match: match.start(), default=None)
    return Contrast(match["expected"].strip(), match["found"].strip()) if match else None
