"""Import modules with an edited text instead of the text on disk."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType


def install_overlay(texts: Mapping[str, str]) -> None:
    """Use `texts`, by resolved path, instead of the files in later imports; loaded modules stay unchanged."""
    if texts:
        sys.meta_path.insert(0, _OverlayFinder(texts))


def resolve_source(name: object) -> str:
    """Return the resolved path of a module's or code object's file name; empty if there is no file."""
    return _resolve(name) if isinstance(name, str) and name and not name.startswith("<") else ""


@cache
def _resolve(name: str) -> str:
    return str(Path(name).resolve())


class _OverlayFinder(importlib.abc.MetaPathFinder):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        text = self._texts.get(resolve_source(spec.origin)) if spec is not None else None
        if spec is None or text is None:
            return None
        spec.loader = _OverlayLoader(fullname, str(spec.origin), text)
        return spec


class _OverlayLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, _: str) -> CodeType | None:
        return self.source_to_code(self._text.encode(), self.path)
