"""What is done once for all workers of a session: one does it, the others wait and hear what came of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from pytest_loop.errors import CheckError


class Once:
    """Things done once, by name; workers of one session share a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._errors: dict[str, str] = {}

    def done(self, name: str, do: Callable[[], None]) -> None:
        """Do it unless it was done; raises `CheckError` for everybody where it went wrong."""
        if name not in self._errors:
            self._errors[name] = _error(do) if self._folder is None else self._shared(self._folder, name, do)
        if self._errors[name]:
            raise CheckError(self._errors[name])

    def _shared(self, folder: Path, name: str, do: Callable[[], None]) -> str:
        from filelock import FileLock

        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = folder / f"once-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        with FileLock(f"{place}.lock"):
            if not place.exists():
                error = _error(do)
                draft = place.with_suffix(".draft")
                draft.write_text(error, encoding="utf-8")
                draft.replace(place)
            return place.read_text(encoding="utf-8")


def _error(do: Callable[[], None]) -> str:
    try:
        do()
    except CheckError as error:
        return str(error)
    return ""
