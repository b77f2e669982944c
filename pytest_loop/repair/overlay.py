"""Files with another text than they have on disk, for whoever imports them from now on."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType


def lay(texts: Mapping[str, str]) -> None:
    """Let these files, by their resolved paths, have these texts; what is imported already stays as it is."""
    if texts:
        sys.meta_path.insert(0, _Finder(texts))


def resolved(name: object) -> str:
    """The file that a module or a piece of code says it comes from; nothing where it comes from none."""
    return _resolved(name) if isinstance(name, str) and name and not name.startswith("<") else ""


@cache
def _resolved(name: str) -> str:
    return str(Path(name).resolve())


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        text = self._texts.get(resolved(spec.origin)) if spec is not None else None
        if spec is None or text is None:
            return None
        spec.loader = _Loader(fullname, str(spec.origin), text)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, _: str) -> CodeType | None:
        return self.source_to_code(self._text.encode(), self.path)
