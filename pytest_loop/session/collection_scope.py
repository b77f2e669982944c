"""Leave out files of the collection: new tests of an agent run in a session of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class CollectionScope:
    """Collect nothing in `left_out` files and folders; if there are files in `only`, collect nothing but these."""

    def __init__(self, left_out: Iterable[str], only: Iterable[str]) -> None:
        self._left_out = frozenset(map(Path, left_out))
        self._only = frozenset(map(Path, only))

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path in self._left_out:
            return True
        is_other = self._only and collection_path not in self._only and not collection_path.is_dir()
        return True if is_other else None
