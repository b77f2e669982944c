"""Texts cut to a number of characters or tokens."""

from __future__ import annotations

from pytest_loop.core.text.sanitizer import clean_text

# A deliberately high estimate: prose has more bytes per token, code about as many.
BYTES_PER_TOKEN = 3


def clip_text(text: str, limit: int) -> str:
    """Cut a text to `limit` characters: keep its head and tail, and state between them how much is missing."""
    if len(text) <= limit:
        return text
    gap = f" [... {len(text) - limit:,} characters left out ...] "
    room = limit - len(gap)
    if room < len(gap):
        return _cut_end(text, limit)
    head = room * 2 // 3
    return text[:head] + gap + text[len(text) - (room - head) :]


def shorten(text: str, limit: int = 200) -> str:
    """Return the sanitized text on one line of at most `limit` characters."""
    line = " ".join(clean_text(text).split())
    return line if len(line) <= limit else _cut_end(line, limit)


def _cut_end(text: str, limit: int) -> str:
    return text[: max(0, limit - 3)] + "..."[: max(0, limit)]


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text costs in a prompt, rather too high than too low."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def fit_tokens(text: str, limit: int) -> str:
    """Clip a text so that it costs at most `limit` tokens."""
    while (cost := estimate_tokens(text)) > limit:
        text = clip_text(text, min(len(text) - 1, len(text) * limit // cost))
    return text
