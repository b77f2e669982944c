"""Convert times from and to the text in files."""

from __future__ import annotations

from datetime import datetime, timezone


def read_clock() -> str:
    """Return the current time in UTC as text."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> float:
    """Return a time from a file in seconds since the epoch."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
