"""Convert times from and to the text in files."""

from __future__ import annotations

from datetime import datetime, timezone


def read_clock() -> str:
    """Return the current time in UTC as text."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> float:
    """Return a time from a file in seconds since the epoch."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def format_local_time(text: str) -> str:
    """Return a time from a file as date and time of this machine's zone; another text is returned as it is."""
    try:
        return datetime.fromtimestamp(parse_time(text)).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return text
