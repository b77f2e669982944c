"""New files that would take the place of an installed module, for an interpreter that is started beside them."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

from pytest_loop.workspace.file_tree import FileChanges, FileTree

_SUFFIXES = sorted(all_suffixes(), key=len, reverse=True)
_PACKAGE = "__init__"


def select_shadowing_files(root: Path, start: FileTree, found: FileChanges) -> FileChanges:
    """Those of what was added that `python -m pytest`, or a script beside them, would import for what is installed.

    Modules of a package hide nothing, and nobody starts anything in a folder that was not there.
    """
    elsewhere = [path for path in sys.path if path and not _is_own(Path(path).resolve(), root.resolve())]
    return FileChanges(added=tuple(path for path in found.added if _hides(path, start, elsewhere)))


def _hides(path: str, start: FileTree, elsewhere: list[str]) -> bool:
    folder, _, file = path.rpartition("/")
    suffix = next((one for one in _SUFFIXES if file.endswith(one)), None)
    if suffix is None:
        return False
    name = file.removesuffix(suffix)
    if name == _PACKAGE:
        folder, _, name = folder.rpartition("/")
    is_known = not folder or folder in start.folders
    if not is_known or any(f"{folder}/{_PACKAGE}{suffix}" in start.entries for suffix in _SUFFIXES):
        return False
    spec = PathFinder.find_spec(name, elsewhere)
    return name in sys.stdlib_module_names or (spec is not None and spec.origin is not None)


def _is_own(path: Path, root: Path) -> bool:
    """Whether modules found there are the project's own; an environment may lie inside of it, and it inside of one."""
    prefixes = [Path(one).resolve() for one in (sys.prefix, sys.base_prefix)]
    installed = [one for one in prefixes if not root.is_relative_to(one)]
    return path.is_relative_to(root) and not any(path.is_relative_to(one) for one in installed)
