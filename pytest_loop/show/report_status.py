"""Choose the letter and the word of a rule in pytest's progress line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LETTERS = {
    "passed": (".", {"green": True}),
    "failed": ("F", {"red": True}),
    "error": ("E", {"red": True}),
    "skipped": ("s", {"yellow": True}),
    "xfailed": ("x", {"yellow": True}),
    "warned": ("W", {"yellow": True}),
    "info": ("i", {"cyan": True}),
    "assumed": ("a", {"yellow": True}),
    "missed": ("m", {"yellow": True}),
    "reused": ("r", {"green": True}),
    "known": ("k", {"yellow": True}),
}


def choose_report_status(
    properties: Mapping[str, Any], verbosity: int
) -> tuple[str, str, tuple[str, Mapping[str, bool]]]:
    """Choose the category, letter and word for pytest_report_teststatus; `-v` adds severity and phase."""
    category = properties["shown"]
    letter, markup = _LETTERS[category]
    suffix = f" ({properties['severity']}, {properties['phase']})" if verbosity > 0 else ""
    return category, letter, (category.upper() + suffix, markup)
