"""New files that an interpreter would import in the place of other modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

from pytest_loop.workspace.file_tree import FileChanges, FileTree
from pytest_loop.workspace.seal import is_in_project

_MODULE_SUFFIXES = sorted(all_suffixes(), key=len, reverse=True)
_PACKAGE = "__init__"


def select_shadowing_files(
    root: Path,
    start: FileTree,
    changes: FileChanges,
    is_sealed: Callable[[str], bool] = lambda _: False,
    folders: Collection[str] = (),
) -> FileChanges:
    """Return the added files that are imported in the place of an installed or a sealed module.

    `folders` are those in which sessions search modules. If they are unknown, an interpreter may be started in every
    folder that is no package; never in one that is new.
    """
    search_path = [path for path in sys.path if path and not is_in_project(Path(path).resolve(), root.resolve())]
    sealed = {_split_module(path) for path in start.entries if _is_module(path) and is_sealed(path)}
    sealed_names = {name for folder, name in sealed if (folder or ".") in folders}

    def is_shadowing(path: str) -> bool:
        if not _is_module(path):
            return False
        folder, name = _split_module(path)
        if (folder, name) in sealed:
            return True
        if not _is_searched(folder, start, folders):
            return False
        spec = PathFinder.find_spec(name, search_path)
        is_installed = name in sys.stdlib_module_names or (spec is not None and spec.origin is not None)
        return is_installed or name in sealed_names

    return FileChanges(added=tuple(filter(is_shadowing, changes.added)))


def _is_searched(folder: str, start: FileTree, folders: Collection[str]) -> bool:
    """Return whether an interpreter may search modules in a folder."""
    if folders:
        return (folder or ".") in folders
    is_new = folder and folder not in start.folders
    return not is_new and not any(f"{folder}/{_PACKAGE}{suffix}" in start.entries for suffix in _MODULE_SUFFIXES)


def _is_module(path: str) -> bool:
    return path.endswith(tuple(_MODULE_SUFFIXES))


def _split_module(path: str) -> tuple[str, str]:
    """Return the folder of a module, and its name; a package lies in the folder around its own."""
    folder, _, file = path.rpartition("/")
    name = file.removesuffix(next(suffix for suffix in _MODULE_SUFFIXES if file.endswith(suffix)))
    if name == _PACKAGE:
        folder, _, name = folder.rpartition("/")
    return folder, name
