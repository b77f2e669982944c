"""The letter and the word of a rule in pytest's progress."""

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


def status(noted: Mapping[str, Any], verbosity: int) -> tuple[str, str, tuple[str, Mapping[str, bool]]]:
    """What pytest counts a rule under; `-v` shows its severity and phase."""
    category = noted["shown"]
    letter, markup = _LETTERS[category]
    more = f" ({noted['severity']}, {noted['phase']})" if verbosity > 0 else ""
    return category, letter, (category.upper() + more, markup)
