"""Whether two runs may edit the same files, by the patterns that say what each may edit."""

from __future__ import annotations

from collections.abc import Sequence

_WILD = "*?["


def can_overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether some path could match a pattern of both; no patterns at all mean everything.

    Only what certainly lies apart does: two patterns whose first folders differ.
    """
    return any(_meet(first, second) for first in one or ("*",) for second in other or ("*",))


def _meet(one: str, other: str) -> bool:
    if one.startswith("!") or other.startswith("!"):
        return False
    first, second = _folders(one), _folders(other)
    return all(mine == yours for mine, yours in zip(first, second, strict=False))


def _folders(pattern: str) -> list[str]:
    """The folders and names that every match begins with; a pattern without a slash matches anywhere."""
    if "/" not in pattern.rstrip("/"):
        return []
    parts = pattern.strip("/").split("/")
    wild = next((at for at, part in enumerate(parts) if any(sign in part for sign in _WILD)), len(parts))
    return parts[:wild]
