"""Comparison of the path patterns that two runs may edit."""

from __future__ import annotations

from collections.abc import Sequence

_WILDCARDS = "*?["


def can_overlap(patterns: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a path could match a pattern of both; no patterns mean every path.

    Patterns are apart only if their leading folders differ.
    """
    return any(_can_meet(first, second) for first in patterns or ("*",) for second in others or ("*",))


def _can_meet(first: str, second: str) -> bool:
    if first.startswith("!") or second.startswith("!"):
        return False
    return all(part == other for part, other in zip(_split_prefix(first), _split_prefix(second), strict=False))


def _split_prefix(pattern: str) -> list[str]:
    """Return the literal folders that every match starts with; a pattern without a slash matches anywhere."""
    if "/" not in pattern.rstrip("/"):
        return []
    parts = pattern.strip("/").split("/")
    is_wild = [any(char in part for char in _WILDCARDS) for part in parts]
    return parts[: is_wild.index(True)] if any(is_wild) else parts
