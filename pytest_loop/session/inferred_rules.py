"""Collect the inferred rules of a run, which are in a hidden folder that pytest would skip."""

from __future__ import annotations

from pathlib import Path

import pytest


class InferredRules:
    """Make pytest collect one rule file, and nothing else in the folder of runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs = path.parents[1]

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path == self._path or collection_path in self._path.parents:
            return False
        return True if self._runs in collection_path.parents else None
