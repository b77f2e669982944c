"""New test files beside sealed ones: an agent may add them, and no session that decides collects them."""

from __future__ import annotations

from pathlib import PurePosixPath

from pytest_loop.workspace.file_tree import FileChanges, FileTree
from pytest_loop.workspace.seal import is_test_module

_CONFTEST = "conftest.py"


def is_new_test(path: str, start: FileTree) -> bool:
    """Return whether a path is a new test file in or below a folder with tests.

    A conftest file for such files alone is one too; in a folder `test*` pytest loads it for all files.
    """
    name = PurePosixPath(path).name
    if path in start.entries or not (is_test_module(name) or name == _CONFTEST):
        return False
    folders = _list_folders(path)
    new_folders = [folder for folder in folders if folder not in start.folders]
    existing = next((folder for folder in folders if folder in start.folders), "")
    if existing and not any(is_test_path(other) and other.startswith(f"{existing}/") for other in start.entries):
        return False
    is_loaded_early = any(PurePosixPath(folder).name.startswith("test") for folder in new_folders)
    return name != _CONFTEST or (bool(new_folders) and not is_loaded_early)


def is_test_path(path: str) -> bool:
    """Return whether the file of a path has a name that pytest collects."""
    return is_test_module(path.rpartition("/")[2])


def list_new_places(start: FileTree, changes: FileChanges) -> tuple[str, ...]:
    """Return the new Python files and the outermost new folders, in which no session that decides collects tests."""
    places = (find_new_place(path, start) for path in changes.added if path.endswith(".py"))
    return tuple(dict.fromkeys(places))


def select_new_tests(changes: FileChanges) -> tuple[str, ...]:
    """Return the new files that pytest would collect by their names."""
    return tuple(path for path in changes.added if is_test_path(path))


def find_new_place(path: str, start: FileTree) -> str:
    """Return the outermost folder of a path that was not there at the start, or the path itself."""
    new_folders = [folder for folder in _list_folders(path) if folder not in start.folders]
    return new_folders[-1] if new_folders else path


def _list_folders(path: str) -> list[str]:
    """Return the folders of a path, the innermost first, without the root."""
    return [str(folder) for folder in PurePosixPath(path).parents][:-1]
