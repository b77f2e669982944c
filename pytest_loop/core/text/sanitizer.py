"""Untrusted text made harmless: what a person would have seen, without what hides or reorders it, and in few words."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from pytest_loop.core.text.terminal_text import shown

# Text in prompts is paid for: three bytes a token is more than prose costs, and about what code does.
BYTES_PER_TOKEN = 3
# Characters without width, that change the direction of writing, or that only machines read.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)


# Build servers obey these wherever they stand in a line: ##[error], ##vso[task.complete], ##teamcity[...].
_COMMAND = re.compile(r"##(?=\w*\[)")


def cleaned(text: str) -> str:
    """The text as a terminal would leave it: erased is gone, overwritten is gone, hidden characters are gone."""
    if text.isascii() and text.isprintable():  # as nearly all texts are
        return _COMMAND.sub("# #", text.rstrip(" "))
    text = shown(_HIDDEN.sub("", text).replace("\r\n", "\n"))
    text = "\n".join([_visible(line) for line in text.split("\n")]).strip("\n")
    return _COMMAND.sub("# #", text)


def _visible(line: str) -> str:
    if line.isprintable():
        return line.rstrip(" ")
    kept = (character if character.isprintable() else _instead(character) for character in line)
    return "".join(kept).rstrip(" ")


def _instead(character: str) -> str:
    return " " if unicodedata.category(character) == "Zs" else ""


def revealed(text: str) -> str:
    """One line with what hides in it: characters without width, of control or of direction are written as codes."""
    if text.replace("\t", " ").isprintable() and (text.isascii() or not _HIDDEN.search(text)):
        return text
    return "".join([_code(character) for character in text])


def _code(character: str) -> str:
    if character == "\t" or (character.isprintable() and not _HIDDEN.match(character)):
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def clipped(text: str, limit: int) -> str:
    """At most `limit` characters: the head and the tail, and how much is missing between them."""
    if len(text) <= limit:
        return text
    gap = f" [... {len(text) - limit:,} characters left out ...] "
    room = limit - len(gap)
    if room < len(gap):
        return text[: max(0, limit - 3)] + "..."[: max(0, limit)]
    head = room * 2 // 3
    return text[:head] + gap + text[len(text) - (room - head) :]


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def one_line(text: str, limit: int = 200) -> str:
    """The text on one line, not longer than `limit`."""
    joined = " ".join(cleaned(text).split())
    return joined if len(joined) <= limit else joined[: max(0, limit - 3)] + "..."[: max(0, limit)]


def tokens(text: str) -> int:
    """What a text costs in a prompt, rather more than less."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def fitted(text: str, most: int) -> str:
    """The text cut so that it costs at most so many tokens."""
    while (cost := tokens(text)) > most:
        text = clipped(text, min(len(text) - 1, len(text) * most // cost))
    return text


def fenced(text: str, nonce: str) -> str:
    """Marked as data that nobody inside can end: the fence carries a word that they do not know."""
    inside = re.sub(re.escape(nonce), "[...]", text, flags=re.IGNORECASE) if nonce else text
    return f"<<<data {nonce}\n{inside}\n{nonce} data>>>"


_DURATION = r"(?:\d+m\s?)?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:ns|us|µs|μs|ms|s|secs?|seconds?|milliseconds?|minutes?)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
# A day beside a clock, as in `Mon Nov 16 17:00:12 2026` and `Mon, 16 Nov 2026 17:00:12 GMT`; without one it is a value.
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
# What changes from run to run, and a word without which it cannot be there: to look for that takes far less time.
_NOISE = (
    ("-", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    ("0x", re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{8,}"), "<address>"),
    (":", _DATED, "<time>"),
    (":", re.compile(rf"\b\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?|\b{_CLOCK}"), "<time>"),
    ("", re.compile(rf"\b{_DURATION}\b"), "<duration>"),
    ("seed", _SEED, r"\1\2<number>"),
    ("pid", _SEED, r"\1\2<number>"),
    ("gw", re.compile(r"\bgw\d+\b"), "<worker>"),
    # A number after a colon is a line only where a file stands before it: {"count":5} holds a value.
    (":", re.compile(r"(\.[A-Za-z]\w{0,9}|<path>|/[\w.+-]{1,99}|(?:Make|Docker)file):\d+(?::\d+)?\b"), r"\1:<line>"),
    ("line", _PLACE, r"\1 <line>"),
    ("col", _PLACE, r"\1 <line>"),
    ("char", _PLACE, r"\1 <line>"),
)


def signature(text: str) -> str:
    """What a failure says without what changes from run to run: addresses, times, temporary paths, lines, seeds."""
    text = " ".join(cleaned(text).split())
    while (quiet := _without_noise(text)) != text:
        text = quiet
    return text


def _without_noise(text: str) -> str:
    if "/" in text or "\\" in text:
        text = _TEMPORARY.sub(_without_folders, text)
    plain = text.lower()
    for word, pattern, instead in _NOISE:
        if word in plain:
            text = pattern.sub(instead, text)
    return text


def _without_folders(found: re.Match[str]) -> str:
    """The name of a file says something, unless it was made up too."""
    name = re.split(r"[/\\]", found[0])[-1]
    return f"<path>/{name}" if "." in name and not name.startswith("tmp") else "<path>"


def fingerprint(text: str) -> str:
    """The signature in 16 characters, to compare and not to read."""
    return hashlib.sha256(signature(text).encode("utf-8", "replace")).hexdigest()[:16]
