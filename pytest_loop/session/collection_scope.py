"""Choose the files that a session of a run collects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_loop.core.judging.test_files import is_utf8


class CollectionScope:
    """Collect nothing in `excluded` files and folders; if there are files in `only`, collect nothing but these.

    Exclude paths that are not UTF-8, too: a `SessionOrder` cannot hold them.
    """

    def __init__(self, excluded: Iterable[str], only: Iterable[str]) -> None:
        self._excluded = frozenset(map(Path, excluded))
        self._only = frozenset(map(Path, only))

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path in self._excluded or not is_utf8(collection_path.name):
            return True
        is_other = self._only and collection_path not in self._only and not collection_path.is_dir()
        return True if is_other else None


class InferredRules:
    """Collect the rule file of a run, which is in a hidden folder that pytest would skip, and nothing else in there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs = path.parents[1]

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path == self._path or collection_path in self._path.parents:
            return False
        return True if self._runs in collection_path.parents else None
