"""Redaction of environment secrets in texts: raw, escaped, URL-encoded and in base64.

Secrets that are wrapped over lines, encrypted or encoded twice are not found.
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

MIN_LENGTH = 8
MIN_VARIETY = 4
# Next to this mark of shortened values, a part of a secret is redacted too, if it is not too short.
ELLIPSIS = "..."
MIN_PIECE = 6

_SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|KEYS?(?:_|$)"
    r"|_PWD$|(?:^|_)(?:AUTH|AUTHORIZATION|BEARER|COOKIE|DSN|JWT|PASS|PAT|SALT|WEBHOOK)(?:_|$)"
)
# Variables that describe a secret hold none.
_DESCRIPTION_NAME = re.compile(
    r"_(?:ALGORITHM|BACKEND|DIR|ENABLED|FILE|FOLDER|HEADER|HOST|LENGTH|LIMIT|METHOD|MODE|PATH|PORT|PREFIX|PROVIDER"
    r"|SIZE|SOCK|TIMEOUT|TTL|TYPE|USER|USERNAME|VERSION)$"
)
_PATH = re.compile(
    r"(?:\.{0,2}|~)/(?:$|(?:Applications|Library|Users|Volumes|__w|app|bin|boot|builds?|data|dev|etc|github|home|lib\d*"
    r"|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys|tmp|usr|var|work|workspaces?)(?:/|$))"
    r"|(?:\.{1,2}|~)[/\\]|(?:/[a-z0-9._-]+)+/?$|[A-Za-z]:[\\/]|file:"
)
_COMMON_VALUES = (
    "anonymous", "changeme", "default", "development", "disabled", "localhost", "optional", "password", "postgres",
    "production", "required", "undefined", "unlimited", "username",
)  # fmt: skip
_URL_PASSWORD = re.compile(r"[A-Za-z][\w+.-]*://[^\s/:@]*:([^\s/@]+)@")
# Leading base64 characters that depend on the bytes before a secret, by their number in the last group of three.
_FOREIGN_CHARACTERS = (0, 2, 3)
_BASE64_END = "(?:[A-Za-z0-9+/_-]?={1,2})?"


class Redactor:
    """Replaces the values of secret environment variables with `[NAME]`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        encoded: set[str] = set()
        for name, value in sorted(environment.items()):
            label = re.sub(r"\W", "_", name)
            for secret in _find_secrets(name, value):
                base64_forms = set(_encode_base64(secret))
                encoded |= base64_forms
                for form in (*_list_plain_forms(secret), *base64_forms):
                    names.setdefault(form, f"[{label}]")
        # Longest first, so that no part is left of a form that contains another.
        self._names = dict(sorted(names.items(), key=lambda item: (-len(item[0]), item[0])))
        self._encoded = encoded
        self._longest = max(map(len, names), default=0)

    def __call__(self, text: str) -> str:
        """Redact a text; searching for each form is faster than one pattern, since mostly none occurs."""
        for form in [form for form in self._names if form in text]:
            if form in self._encoded:
                text = re.sub(re.escape(form) + _BASE64_END, self._names[form], text)
            else:
                text = text.replace(form, self._names[form])
        return self._redact_pieces(text) if self._names and ELLIPSIS in text else text

    def _redact_pieces(self, text: str) -> str:
        """Redact parts of secrets next to an ellipsis: shortened values keep their beginning and end."""
        first, *others = text.split(ELLIPSIS)
        parts = [first, *map(self._redact_start, others)]
        return ELLIPSIS.join([*map(self._redact_end, parts[:-1]), parts[-1]])

    def _redact_start(self, text: str) -> str:
        if text[:MIN_PIECE] not in self._pieces:  # the usual case
            return text
        for length in range(min(self._longest, len(text)), MIN_PIECE - 1, -1):
            if name := self._endings.get(text[:length]):
                return name + text[length:]
        return text

    def _redact_end(self, text: str) -> str:
        length = self.measure_open_end(text) if text[-MIN_PIECE:] in self._pieces else 0
        return text if length < MIN_PIECE else text[:-length] + self._beginnings[text[-length:]]

    @cached_property
    def _pieces(self) -> frozenset[str]:
        return frozenset(form[start : start + MIN_PIECE] for form in self._names for start in range(len(form)))

    @cached_property
    def _beginnings(self) -> dict[str, str]:
        return {form[:end]: name for form, name in self._names.items() for end in range(1, len(form))}

    @cached_property
    def _endings(self) -> dict[str, str]:
        return {form[start:]: name for form, name in self._names.items() for start in range(1, len(form))}

    def measure_open_end(self, text: str) -> int:
        """Return how many characters at the end may be the beginning of a secret."""
        longest = min(self._longest - 1, len(text))
        return next((length for length in range(longest, 0, -1) if text[-length:] in self._beginnings), 0)


def redact_values(value: Any, redact: Redactor) -> Any:
    """Redact all texts, keys included, in a value made of lists and dicts."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact_values(key, redact): redact_values(item, redact) for key, item in value.items()}
    return [redact_values(item, redact) for item in value] if isinstance(value, (list, tuple)) else value


class RedactedStream:
    """Passes the output of a process on, redacted; a possible beginning of a secret waits for the next piece."""

    def __init__(self, forward: Callable[[bytes], None], redact: Redactor) -> None:
        self._forward = forward
        self._redact = redact
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""

    def __call__(self, data: bytes) -> None:
        text = self._redact(self._waiting + self._decoder.decode(data))
        end = len(text) - self._redact.measure_open_end(text)
        self._waiting = text[end:]
        if end:
            self._forward(text[:end].encode())

    def end(self) -> None:
        """Pass on the rest."""
        text = self._waiting + self._decoder.decode(b"", final=True)
        self._waiting = ""
        if text:
            self._forward(text.encode())


def _find_secrets(name: str, value: str) -> Iterator[str]:
    """Find the secrets of a variable: passwords in URLs, and if its name is secret, its value and the lines of it."""
    for password in _URL_PASSWORD.findall(value):
        yield from filter(_is_secret, {password, unquote(password)})
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).upper()
    if _SECRET_NAME.search(words) and not _DESCRIPTION_NAME.search(words):
        yield from filter(_is_secret, {value.strip(), *map(str.strip, value.strip().splitlines())})


def _is_secret(value: str) -> bool:
    """Return whether a value is long and unusual enough; redacting common words would make texts unreadable."""
    return (
        len(value) >= MIN_LENGTH
        and len(set(value)) >= MIN_VARIETY
        and not value.startswith("-----")
        and value.lower() not in _COMMON_VALUES
        and not _PATH.match(value)
    )


def _list_plain_forms(secret: str) -> Iterable[str]:
    """Return the secret raw, escaped and URL-encoded."""
    data = secret.encode("utf-8", "replace")
    urls = [quote(data, safe=""), quote(data), quote_plus(data)]
    lower = [re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), url) for url in urls]
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], *urls, *lower}


def _encode_base64(secret: str) -> Iterable[str]:
    """Return the secret in base64 as part of a longer text, for each possible offset."""
    data = secret.encode("utf-8", "replace")
    for offset, foreign in enumerate(_FOREIGN_CHARACTERS):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        form = encoded[foreign : (offset + len(data)) * 8 // 6]
        yield from {form, form.replace("+", "-").replace("/", "_")}
