"""New files: tests beside sealed ones, and files that are imported in the place of other modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path, PurePosixPath

from pytest_loop.core.judging.test_files import is_test_file
from pytest_loop.workspace.environment import is_in_project
from pytest_loop.workspace.file_tree import FileChanges, FileTree, list_parents
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.seal import BUILD_FILES, CONFIGURATION_FILES

_MODULE_SUFFIXES = sorted(all_suffixes(), key=len, reverse=True)
_PACKAGE = "__init__"
_CONFTEST = "conftest.py"
_CONFIGURATION = PathPatterns((*CONFIGURATION_FILES, *BUILD_FILES))


# -- new tests: an agent may add them, and no session that decides collects them


def is_new_test(path: str, start: FileTree) -> bool:
    """Return whether a path is a new test file, or belongs to one.

    A new test file is in or below a folder with tests, in the root of the project, or in a new folder there. The other
    files of a new folder below a folder with tests belong to it, except configuration. Of conftest files, only one in a
    new folder does: new tests alone load it, unless the folder is called `test*`, where pytest loads it for all tests.
    """
    name = PurePosixPath(path).name
    new_folders = _list_new_folders(path, start)
    old_folder = next((folder for folder in list_parents(path) if folder in start.folders), "")
    is_support = old_folder and new_folders and not _CONFIGURATION.matches(path)
    if path in start.entries or not (is_test_file(path) or name == _CONFTEST or is_support):
        return False
    if old_folder and not any(other.startswith(f"{old_folder}/") and is_test_file(other) for other in start.entries):
        return False
    is_loaded_early = any(PurePosixPath(folder).name.startswith("test") for folder in new_folders)
    return name != _CONFTEST or (bool(new_folders) and not is_loaded_early)


def find_new_place(path: str, start: FileTree) -> str:
    """Return the outermost folder of a path that was not there at the start, or the path itself."""
    return next(reversed(_list_new_folders(path, start)), path)


def _list_new_folders(path: str, start: FileTree) -> list[str]:
    """Return the folders of a path that were not there at the start, the innermost first."""
    return [folder for folder in list_parents(path) if folder not in start.folders]


# -- shadowing files


def select_shadowing_files(
    root: Path,
    start: FileTree,
    changes: FileChanges,
    is_sealed: Callable[[str], bool] = lambda _: False,
    folders: Collection[str] = (),
) -> FileChanges:
    """Return the added files that are imported in the place of an installed or a sealed module.

    `folders` are the folders in which sessions search modules. If it is empty, they are unknown: assume every folder
    that is neither new nor a package.
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
