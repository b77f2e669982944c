"""Signatures of failure messages, which stay equal from run to run."""

from __future__ import annotations

import hashlib
import re

from pytest_loop.core.text.sanitizer import clean_text

_DURATION = r"(?:\d+m\s?)?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:ns|us|µs|μs|ms|s|secs?|seconds?|milliseconds?|minutes?)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
# A date next to a time of day, as in `Mon, 16 Nov 2026 17:00:12 GMT`; a date alone is a value.
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DATED = re.compile(
    rf"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}},? )?"
    rf"(?:{_MONTH} \d{{1,2}}(?:,? \d{{4}})?|\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}})(?:,? |:)"
    r"\d?\d:\d\d:\d\d(?:[.,]\d+)?(?: [AP]M)?(?: (?:UTC|GMT|CES?T|[ECMP][SD]T|[+-]\d{4}))?(?: (?:19|20)\d\d)?\b"
)
_TEMPORARY = re.compile(
    r"/(?:private/)?(?:tmp|var/folders|var/tmp)(?:/[\w.+@-]+)+"
    r"|:\\(?:[^\s\\\"']+\\){1,9}Temp(?:\\[^\s\\\"']+)+"
)
_SEED = re.compile(r"(?<![A-Za-z_])(seed|pid)(\W{1,3})\d+", re.IGNORECASE)
_PLACE = re.compile(r"(?<![A-Za-z_])(lines?|column|col|char) \d+(?:-\d+)?", re.IGNORECASE)
# Each pattern with a word that every match contains: searching for the word first is much faster.
_NOISE = (
    ("-", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    ("0x", re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{8,}"), "<address>"),
    (":", _DATED, "<time>"),
    (":", re.compile(rf"\b\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?|\b{_CLOCK}"), "<time>"),
    ("", re.compile(rf"\b{_DURATION}\b"), "<duration>"),
    ("seed", _SEED, r"\1\2<number>"),
    ("pid", _SEED, r"\1\2<number>"),
    ("gw", re.compile(r"\bgw\d+\b"), "<worker>"),
    # A number after a colon is a line number only after a file name: {"count":5} holds a value.
    (":", re.compile(r"(\.[A-Za-z]\w{0,9}|<path>|/[\w.+-]{1,99}|(?:Make|Docker)file):\d+(?::\d+)?\b"), r"\1:<line>"),
    ("line", _PLACE, r"\1 <line>"),
    ("col", _PLACE, r"\1 <line>"),
    ("char", _PLACE, r"\1 <line>"),
)


def compute_signature(text: str) -> str:
    """Replace what differs from run to run in a failure message: addresses, times, temporary paths, lines, seeds."""
    text = " ".join(clean_text(text).split())
    while (reduced := _drop_noise(text)) != text:
        text = reduced
    return text


def _drop_noise(text: str) -> str:
    if "/" in text or "\\" in text:
        text = _TEMPORARY.sub(_drop_folders, text)
    lowered = text.lower()
    for word, pattern, replacement in _NOISE:
        if word in lowered:
            text = pattern.sub(replacement, text)
    return text


def _drop_folders(match: re.Match[str]) -> str:
    """Keep the file name of a temporary path unless it is generated too."""
    name = re.split(r"[/\\]", match[0])[-1]
    return f"<path>/{name}" if "." in name and not name.startswith("tmp") else "<path>"


def compute_fingerprint(text: str) -> str:
    """Return a 16-character hash of the signature."""
    return hashlib.sha256(compute_signature(text).encode("utf-8", "replace")).hexdigest()[:16]
