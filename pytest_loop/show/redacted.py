"""A stream without secrets: what may be the beginning of one waits until the next piece says what it is."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from pytest_loop.core.redacting import Redactor


class Redacted:
    """Stands in front of whoever hears the output of a process."""

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
