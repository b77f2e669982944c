"""Untrusted text made harmless: only what a person would see on a terminal remains."""

from __future__ import annotations

import re
import unicodedata

from pytest_loop.core.text.terminal_emulation import render_visible_text

# Characters without width, that change the direction of writing, or that only machines read.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
# Build servers execute these anywhere in a line: ##[error], ##vso[task.complete], ##teamcity[...].
_SERVER_COMMAND = re.compile(r"##(?=\w*\[)")


def clean_text(text: str) -> str:
    """Return the text as a terminal would show it, without erased, overwritten and hidden characters."""
    if not (text.isascii() and text.isprintable()):
        text = render_visible_text(_HIDDEN.sub("", text).replace("\r\n", "\n"))
        text = "\n".join([_keep_printable(line) for line in text.split("\n")]).strip("\n")
    return _SERVER_COMMAND.sub("# #", text.rstrip(" "))


def _keep_printable(line: str) -> str:
    if not line.isprintable():
        line = "".join(" " if unicodedata.category(char) == "Zs" else char for char in line if _is_visible(char))
    return line.rstrip(" ")


def _is_visible(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def reveal_hidden(line: str) -> str:
    """Write hidden, control and direction characters of a line as escape codes."""
    if line.replace("\t", " ").isprintable() and (line.isascii() or not _HIDDEN.search(line)):
        return line
    return "".join([_escape(char) for char in line])


def _escape(char: str) -> str:
    if char == "\t" or (char.isprintable() and not _HIDDEN.match(char)):
        return char
    if "\udc80" <= char <= "\udcff":  # a byte that is not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def fence_text(text: str, nonce: str) -> str:
    """Put a text between two lines with a nonce that mark it as data; remove the nonce from the text itself."""
    inside = re.sub(re.escape(nonce), "[...]", text, flags=re.IGNORECASE) if nonce else text
    return f"<<<data {nonce}\n{inside}\n{nonce} data>>>"
