"""New test files beside sealed ones: an agent may add them, and no session that decides collects them."""

from __future__ import annotations

from pathlib import PurePosixPath

from pytest_loop.workspace.file_tree import FileTree, list_parents
from pytest_loop.workspace.seal import is_test_module

_CONFTEST = "conftest.py"


def is_new_test(path: str, start: FileTree) -> bool:
    """Return whether a path is a new test file in or below a folder with tests.

    A conftest file for such files alone is one too; in a folder `test*` pytest loads it for all files.
    """
    name = PurePosixPath(path).name
    if path in start.entries or not (is_test_module(name) or name == _CONFTEST):
        return False
    folders = list_parents(path)
    new_folders = [folder for folder in folders if folder not in start.folders]
    existing = next((folder for folder in folders if folder in start.folders), "")
    if existing and not any(other.startswith(f"{existing}/") and is_test_path(other) for other in start.entries):
        return False
    is_loaded_early = any(PurePosixPath(folder).name.startswith("test") for folder in new_folders)
    return name != _CONFTEST or (bool(new_folders) and not is_loaded_early)


def is_test_path(path: str) -> bool:
    """Return whether the file of a path has a name that pytest collects."""
    return is_test_module(path.rpartition("/")[2])


def find_new_place(path: str, start: FileTree) -> str:
    """Return the outermost folder of a path that was not there at the start, or the path itself."""
    new_folders = [folder for folder in list_parents(path) if folder not in start.folders]
    return new_folders[-1] if new_folders else path
