"""Sign events and snapshots with a secret outside of the project, so that a rewritten history is noticed."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path

_KEY_LENGTH = 32
_FIELD = re.compile(rb',\s?"mac":\s?"([0-9a-f]{32})"\}\s*\Z')


class Trust(Enum):
    """The author of a history: this machine, an unknown writer, or one who changed what this machine signed."""

    SIGNED = "signed here"
    UNKNOWN = "written elsewhere, or by a tool that does not sign"
    REWRITTEN = "not as this machine wrote it"


def find_state_folder() -> Path:
    """Return the folder for the secret, and for the list of signed runs."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "pytest-loop"


class Signer:
    """Sign lines of JSON; without a folder that can be written nothing is signed."""

    def __init__(self, folder: Path) -> None:
        self._key = _load_or_make_key(find_state_folder())
        name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:_KEY_LENGTH]
        self._marker = find_state_folder() / "runs" / name

    @property
    def is_known_run(self) -> bool:
        """Whether a run in this folder was signed here."""
        return self._marker.exists()

    def register(self) -> None:
        """Remember that the run in this folder is signed."""
        if self._key is not None and not self.is_known_run:
            with suppress(OSError):
                self._marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._marker.touch(mode=0o600)

    def sign(self, line: bytes) -> bytes:
        """Return a JSON object with its signature as the last field."""
        if self._key is None:
            return line
        return line[:-1] + b', "mac": "' + self._compute_signature(line) + b'"}'

    def is_signed(self, line: bytes) -> bool:
        """Return whether a JSON object has the signature of this machine."""
        match = _FIELD.search(line)
        return bool(
            match and self._key and hmac.compare_digest(self._compute_signature(line[: match.start()] + b"}"), match[1])
        )

    def _compute_signature(self, line: bytes) -> bytes:
        return hmac.new(self._key or b"", line, hashlib.sha256).hexdigest()[:_KEY_LENGTH].encode()


@cache
def _load_or_make_key(folder: Path) -> bytes | None:
    """Return the secret of this user, made at the first call; None if the folder cannot be used."""
    path = folder / "key"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            temp_file = folder / f".{secrets.token_hex(8)}"
            temp_file.touch(mode=0o600)
            temp_file.write_bytes(secrets.token_bytes(_KEY_LENGTH))
            try:
                os.link(temp_file, path)  # whole, or not at all
            finally:
                temp_file.unlink()
        return path.read_bytes() or None
    return None
