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
MIN_DISTINCT_CHARACTERS = 4
# A shortened value shows only pieces of a secret: next to an ellipsis, pieces of this length are redacted too.
ELLIPSIS = "..."
MIN_PIECE_LENGTH = 6

_SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|KEYS?(?:_|$)"
    r"|_PWD$|(?:^|_)(?:AUTH|AUTHORIZATION|BEARER|COOKIE|DSN|JWT|PASS|PAT|SALT|WEBHOOK)(?:_|$)"
)
# Variables with these names describe a secret and do not contain one.
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
# Leading base64 characters that also encode bytes before the secret, for 0, 1 and 2 such bytes in its first group.
_SHARED_CHARACTERS = (0, 2, 3)
_BASE64_END = "(?:[A-Za-z0-9+/_-]?={1,2})?"


class Redactor:
    """Replace the values of secret environment variables with `[NAME]`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        labels: dict[str, str] = {}
        base64_forms: set[str] = set()
        for name, value in sorted(environment.items()):
            label = re.sub(r"\W", "_", name)
            for secret in _find_secrets(name, value):
                encoded = set(_encode_base64(secret))
                base64_forms |= encoded
                for form in (*_list_plain_forms(secret), *encoded):
                    labels.setdefault(form, f"[{label}]")
        # Longest first: a form may contain another, and all of it must be redacted.
        self._labels = dict(sorted(labels.items(), key=lambda item: (-len(item[0]), item[0])))
        self._base64_forms = base64_forms
        self._longest = max(map(len, labels), default=0)

    def __call__(self, text: str) -> str:
        """Redact a text; searching for each form is faster than one pattern, since mostly none occurs."""
        for form in [form for form in self._labels if form in text]:
            if form in self._base64_forms:
                text = re.sub(re.escape(form) + _BASE64_END, self._labels[form], text)
            else:
                text = text.replace(form, self._labels[form])
        return self._redact_pieces(text) if self._labels and ELLIPSIS in text else text

    def _redact_pieces(self, text: str) -> str:
        """Redact parts of secrets next to an ellipsis: shortened values keep their beginning and end."""
        first, *others = text.split(ELLIPSIS)
        parts = [first, *map(self._redact_leading_piece, others)]
        return ELLIPSIS.join([*map(self._redact_trailing_piece, parts[:-1]), parts[-1]])

    def _redact_leading_piece(self, text: str) -> str:
        if text[:MIN_PIECE_LENGTH] not in self._pieces:  # the usual case
            return text
        for length in range(min(self._longest, len(text)), MIN_PIECE_LENGTH - 1, -1):
            if name := self._endings.get(text[:length]):
                return name + text[length:]
        return text

    def _redact_trailing_piece(self, text: str) -> str:
        length = self.measure_partial_secret(text) if text[-MIN_PIECE_LENGTH:] in self._pieces else 0
        return text if length < MIN_PIECE_LENGTH else text[:-length] + self._beginnings[text[-length:]]

    @cached_property
    def _pieces(self) -> frozenset[str]:
        return frozenset(form[start : start + MIN_PIECE_LENGTH] for form in self._labels for start in range(len(form)))

    @cached_property
    def _beginnings(self) -> dict[str, str]:
        return {form[:end]: name for form, name in self._labels.items() for end in range(1, len(form))}

    @cached_property
    def _endings(self) -> dict[str, str]:
        return {form[start:]: name for form, name in self._labels.items() for start in range(1, len(form))}

    def measure_partial_secret(self, text: str) -> int:
        """Return how many characters at the end of a text may be the beginning of a secret."""
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
    """Redact the output of a process and forward it; a possible start of a secret is held back until the next call."""

    def __init__(self, forward: Callable[[bytes], None], redact: Redactor) -> None:
        self._forward = forward
        self._redact = redact
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def __call__(self, data: bytes) -> None:
        text = self._redact(self._pending + self._decoder.decode(data))
        end = len(text) - self._redact.measure_partial_secret(text)
        self._pending = text[end:]
        if end:
            self._forward(text[:end].encode())

    def end(self) -> None:
        """Forward the text that was held back."""
        text = self._pending + self._decoder.decode(b"", final=True)
        self._pending = ""
        if text:
            self._forward(text.encode())


def _find_secrets(name: str, value: str) -> Iterator[str]:
    """Yield the passwords in URLs and, if the name suggests a secret, the whole value and each of its lines."""
    for password in _URL_PASSWORD.findall(value):
        yield from filter(_is_secret, {password, unquote(password)})
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).upper()
    if _SECRET_NAME.search(words) and not _DESCRIPTION_NAME.search(words):
        yield from filter(_is_secret, {value.strip(), *map(str.strip, value.strip().splitlines())})


def _is_secret(value: str) -> bool:
    """Return whether a value is long and unusual enough to redact; redacting common words makes texts unreadable."""
    return (
        len(value) >= MIN_LENGTH
        and len(set(value)) >= MIN_DISTINCT_CHARACTERS
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
    """Yield the secret as it appears in the base64 of a longer text, for each offset in a group of three bytes."""
    data = secret.encode("utf-8", "replace")
    for offset, shared in enumerate(_SHARED_CHARACTERS):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        form = encoded[shared : (offset + len(data)) * 8 // 6]
        yield from {form, form.replace("+", "-").replace("/", "_")}
