"""Secrets of the environment taken out of texts, as well as that can be done: raw, escaped, URL-encoded, in base64.

What is wrapped over lines, encrypted, or encoded twice is not found.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus, unquote

SHORTEST = 8
LEAST_VARIETY = 4
# Beside such a mark a part of a secret is taken for one, if it is not too short.
CUT = "..."
SHORTEST_PIECE = 6

_SECRET = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|KEYS?(?:_|$)"
    r"|_PWD$|(?:^|_)(?:AUTH|AUTHORIZATION|BEARER|COOKIE|DSN|JWT|PASS|PAT|SALT|WEBHOOK)(?:_|$)"
)
# What is said about a secret is none.
_ABOUT = re.compile(
    r"_(?:ALGORITHM|BACKEND|DIR|ENABLED|FILE|FOLDER|HEADER|HOST|LENGTH|LIMIT|METHOD|MODE|PATH|PORT|PREFIX|PROVIDER"
    r"|SIZE|SOCK|TIMEOUT|TTL|TYPE|USER|USERNAME|VERSION)$"
)
_PATH = re.compile(
    r"(?:\.{0,2}|~)/(?:$|(?:Applications|Library|Users|Volumes|__w|app|bin|boot|builds?|data|dev|etc|github|home|lib\d*"
    r"|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys|tmp|usr|var|work|workspaces?)(?:/|$))"
    r"|(?:\.{1,2}|~)[/\\]|(?:/[a-z0-9._-]+)+/?$|[A-Za-z]:[\\/]|file:"
)
_PLAIN = (
    "anonymous", "changeme", "default", "development", "disabled", "localhost", "optional", "password", "postgres",
    "production", "required", "undefined", "unlimited", "username",
)  # fmt: skip
_URL_PASSWORD = re.compile(r"[A-Za-z][\w+.-]*://[^\s/:@]*:([^\s/@]+)@")
# How many characters of base64 depend on what stands before a secret, by the bytes of it in the last group of three.
_FOREIGN = (0, 2, 3)
_BASE64_END = "(?:[A-Za-z0-9+/_-]?={1,2})?"


class Redactor:
    """Puts `[NAME]` where the value of a secret variable stands."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        encoded: set[str] = set()
        for name, value in sorted(environment.items()):
            for secret in _secrets(name, value):
                encoded.update(_base64(secret))
                for form in (*_written(secret), *_base64(secret)):
                    names.setdefault(form, f"[{_shown(name)}]")
        # The longest first, so that nothing is left of one that contains another.
        self._names = dict(sorted(names.items(), key=lambda one: (-len(one[0]), one[0])))
        self._encoded = encoded
        self._longest = max(map(len, names), default=0)

    def __call__(self, text: str) -> str:
        """Looking for each form takes less time than any pattern that has them all: nearly always there is none."""
        for form in [one for one in self._names if one in text]:
            if form in self._encoded:
                text = re.sub(re.escape(form) + _BASE64_END, self._names[form], text)
            else:
                text = text.replace(form, self._names[form])
        return self._without_pieces(text) if self._names and CUT in text else text

    def _without_pieces(self, text: str) -> str:
        """Who cuts a long value keeps its beginning and its end, and with them perhaps half of a secret."""
        first, *others = text.split(CUT)
        kept = [first, *(self._without_ending(one) for one in others)]
        return CUT.join([*(self._without_beginning(one) for one in kept[:-1]), kept[-1]])

    def _without_ending(self, text: str) -> str:
        if text[:SHORTEST_PIECE] not in self._pieces:  # as nearly always
            return text
        for length in range(min(self._longest, len(text)), SHORTEST_PIECE - 1, -1):
            if name := self._endings.get(text[:length]):
                return name + text[length:]
        return text

    def _without_beginning(self, text: str) -> str:
        length = self.open_end(text) if text[-SHORTEST_PIECE:] in self._pieces else 0
        return text if length < SHORTEST_PIECE else text[:-length] + self._beginnings[text[-length:]]

    @cached_property
    def _pieces(self) -> frozenset[str]:
        return frozenset(form[at : at + SHORTEST_PIECE] for form in self._names for at in range(len(form)))

    @cached_property
    def _beginnings(self) -> dict[str, str]:
        return {form[:end]: name for form, name in self._names.items() for end in range(1, len(form))}

    @cached_property
    def _endings(self) -> dict[str, str]:
        return {form[start:]: name for form, name in self._names.items() for start in range(1, len(form))}

    def open_end(self, text: str) -> int:
        """How many characters at the end may be the beginning of a secret that the next piece goes on with."""
        most = min(self._longest - 1, len(text))
        return next((length for length in range(most, 0, -1) if text[-length:] in self._beginnings), 0)


def redact_values(value: Any, redact: Redactor) -> Any:
    """The same for all texts in a value made of lists and dicts; keys are texts too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact_values(key, redact): redact_values(one, redact) for key, one in value.items()}
    return [redact_values(one, redact) for one in value] if isinstance(value, (list, tuple)) else value


class RedactedStream:
    """Stands in front of whoever hears a process: what may be the beginning of a secret waits for the next piece."""

    def __init__(self, heard: Callable[[bytes], None], redact: Redactor) -> None:
        self._heard = heard
        self._redact = redact
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def __call__(self, data: bytes) -> None:
        text = self._redact(self._rest + self._decoder.decode(data))
        end = len(text) - self._redact.open_end(text)
        self._rest = text[end:]
        if end:
            self._heard(text[:end].encode())

    def end(self) -> None:
        """Nothing more comes: what waits was no secret."""
        text = self._rest + self._decoder.decode(b"", final=True)
        self._rest = ""
        if text:
            self._heard(text.encode())


def _shown(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _secrets(name: str, value: str) -> Iterator[str]:
    """What must not be seen of a variable: its value, the lines of it, and a password in an address."""
    for password in _URL_PASSWORD.findall(value):
        yield from filter(_is_secret, {password, unquote(password)})
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).upper()
    if _SECRET.search(words) and not _ABOUT.search(words):
        whole = value.strip()
        yield from filter(_is_secret, {whole, *map(str.strip, whole.splitlines())})


def _is_secret(value: str) -> bool:
    """Whether a value is long and odd enough; what stands in many texts would make them unreadable."""
    return (
        len(value) >= SHORTEST
        and len(set(value)) >= LEAST_VARIETY
        and not value.startswith("-----")
        and value.lower() not in _PLAIN
        and not _PATH.match(value)
    )


def _written(secret: str) -> Iterable[str]:
    """The ways in which somebody may print it."""
    plain = secret.encode("utf-8", "replace")
    addresses = [quote(plain, safe=""), quote(plain), quote_plus(plain)]
    lower = [re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), one) for one in addresses]
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], *addresses, *lower}


def _base64(secret: str) -> Iterable[str]:
    """What it looks like inside something longer, wherever it begins there."""
    data = secret.encode("utf-8", "replace")
    for before, foreign in enumerate(_FOREIGN):
        whole = base64.b64encode(bytes(before) + data).decode()
        own = whole[foreign : (before + len(data)) * 8 // 6]
        yield from {own, own.replace("+", "-").replace("/", "_")}
