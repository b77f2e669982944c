"""Format the texts of a page: hidden characters, sizes and numbers."""

from __future__ import annotations

from pytest_loop.core.text.sanitizer import reveal_hidden

UNKNOWN = "unknown"


def reveal_lines(text: str) -> str:
    """Return the text with hidden characters as codes."""
    return "\n".join(map(reveal_hidden, text.split("\n")))


def measure_escaped_size(text: str) -> int:
    """Return the size in bytes of a text escaped for the page."""
    return len(text.encode("utf-8", "replace")) + 5 * sum(map(text.count, "<>&'"))


def format_seconds(number: float | None) -> str:
    """Format a duration."""
    if number is None:
        return UNKNOWN
    if number >= 60:
        return f"{int(number // 60)} min {int(number % 60)} s"
    return f"{number:.1f} s" if number >= 1 else f"{number * 1000:.0f} ms"


def format_tokens(number: float | None) -> str:
    """Format a number of tokens."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def format_cost(number: float | None) -> str:
    """Format an amount of money."""
    return UNKNOWN if number is None else f"{number:.4g} USD"


def format_moment(text: str) -> str:
    """Format a time stamp of an event."""
    return f"{text[:10]} {text[11:19]} UTC" if text.endswith("Z") and len(text) >= 20 else text or UNKNOWN
