"""Rules that a run keeps in its own folder: they judge too, although pytest passes hidden folders by."""

from __future__ import annotations

from pathlib import Path

import pytest


class KeptRules:
    """Lets pytest into the folder of one rule file, and to nothing else that runs keep."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs = path.parents[1]

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path == self._path or collection_path in self._path.parents:
            return False
        return True if self._runs in collection_path.parents else None
