"""A build that runs once for all workers of a session: one runs it, the others wait for its outcome."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path

from pytest_loop.errors import CheckError
from pytest_loop.store import disk
from pytest_loop.store.lock import lock_folder


class BuildOnce:
    """Run each named action once; workers of one session share the outcomes in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._errors: dict[str, str] = {}

    def run(self, name: str, action: Callable[[], None]) -> None:
        """Run the action on the first call with a name; raise its `CheckError` on each later call, too."""
        if name not in self._errors:
            folder = self._folder
            self._errors[name] = _run(action) if folder is None else _run_shared(folder, name, action)
        if self._errors[name]:
            raise CheckError(self._errors[name])


def _run_shared(folder: Path, name: str, action: Callable[[], None]) -> str:
    """Run the action unless another worker has; return its error or an empty text."""
    result_folder = folder / f"once-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    result_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    result = result_folder / "result"
    with lock_folder(result_folder, timeout=math.inf):
        if not result.exists():
            disk.write_atomically(result, _run(action).encode(), durable=False)
        return result.read_text(encoding="utf-8")


def _run(action: Callable[[], None]) -> str:
    """Run the action, and return its error or an empty text."""
    try:
        action()
    except CheckError as error:
        return str(error)
    return ""
