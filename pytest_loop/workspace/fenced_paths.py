"""The paths that a fence keeps read-only: sealed files, the environment, and what git runs."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest_loop
from pytest_loop.workspace.environment import is_in_project, list_site_folders
from pytest_loop.workspace.file_scan import TOOL_FOLDERS
from pytest_loop.workspace.file_tree import FileKind, Stamp, list_parents, read_stamp
from pytest_loop.workspace.gitignore import GIT_FOLDER
from pytest_loop.workspace.sealed_files import SealedFiles

# Each path is a mount, and starting a process takes longer with each of them.
MAX_PATHS = 500
# An honest edit may change a part of this file: it stays writable, and is compared afterwards.
_SETTINGS_FILE = "pyproject.toml"
# Names of new files: a folder is read-only as a whole only if all of them would be sealed in it.
_NEW_NAMES = ("new", "new/", "new.py", "test_new.py", "new_test.py")
# Folders in which tools write while tests run. Bytecode is no reason to write: Python does without.
_CACHE_FOLDERS = TOOL_FOLDERS - {GIT_FOLDER, "__pycache__"}
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class ReadOnlyPaths:
    """Sealed files and folders for a fence, relative to the project; `omitted_count` counts those beyond the limit."""

    paths: tuple[str, ...] = ()
    omitted_count: int = 0


def select_read_only_paths(
    project: SealedFiles,
    written: Collection[str] | None,
    *,
    are_sources_open: bool = False,
    limit: int = MAX_PATHS,
) -> ReadOnlyPaths:
    """Return closed folders, in which every file is sealed, also a new one, and single sealed files elsewhere.

    `written` are files and folders (with a slash at the end) that sessions write, and which stay writable; None if that
    is unknown: then no folder is read-only. With `are_sources_open`, sealed Python files stay writable, for a
    formatter.
    """
    paths = _ClosedFolders(project, written, are_sources_open).list_paths()
    first = sorted(paths, key=lambda path: (not path.endswith("/"), path.count("/"), path))[:limit]
    return ReadOnlyPaths(tuple(first), len(paths) - len(first))


class _ClosedFolders:
    """Find the closed folders of a project, in which every file is sealed, also a new one."""

    def __init__(self, project: SealedFiles, written: Collection[str] | None, are_sources_open: bool) -> None:
        self._is_sealed = project.is_sealed
        self._entries = project.start.entries
        self._sealed = project.list_sealed_files()
        sources = (path for path in self._sealed if are_sources_open and path.endswith(".py"))
        self._written = frozenset((*(written or ()), *sources))
        self._is_write_unknown = written is None
        self._closed: dict[str, bool] = {}
        self._open_folders: set[str] = set()
        others = self._entries.keys() - set(self._sealed)
        for path in (*others, *self._written, *project.scope.outputs, f"{project.scope.runs_folder or '.'}/"):
            self._open_folders.update(list_parents(path))

    def list_paths(self) -> list[str]:
        """Return the outermost closed folders, and the sealed files elsewhere."""
        paths = (self._find_path(path) for path in self._sealed)
        return list(dict.fromkeys(path for path in paths if path))

    def _find_path(self, path: str) -> str:
        """Return the outermost closed folder of a sealed file, the file itself, or nothing if it stays writable."""
        folder = "" if self._is_write_unknown else next(filter(self._is_closed, reversed(list_parents(path))), "")
        if folder:
            return f"{folder}/"
        is_writable = path in self._written or path.rpartition("/")[2] == _SETTINGS_FILE
        return "" if is_writable or self._entries[path].kind is not FileKind.FILE else path

    def _is_closed(self, folder: str) -> bool:
        if folder not in self._closed:
            new_paths = (f"{folder}/{name}" for name in _NEW_NAMES)
            self._closed[folder] = folder not in self._open_folders and all(map(self._is_sealed, new_paths))
        return self._closed[folder]


def list_cache_folders(folder: Path) -> Iterator[str]:
    """Yield the folders inside of a folder in which tools write their caches."""
    for parent, names, _ in os.walk(folder):
        caches = [name for name in names if name in _CACHE_FOLDERS]
        yield from (os.path.join(parent, name) for name in caches)  # noqa: PTH118 - called for many folders
        names[:] = [name for name in names if name not in caches]


def list_environment_paths(root: Path) -> tuple[str, ...]:
    """Return the interpreter, its library and its packages, unless they belong to the project or hold it."""
    paths = {Path(path).resolve() for path in _list_environment_candidates() if path}
    return tuple(
        sorted(
            str(path)
            for path in paths
            if path.exists() and not root.is_relative_to(path) and not is_in_project(path, root)
        )
    )


def _list_environment_candidates() -> Iterator[str]:
    if sys.prefix != sys.base_prefix:
        yield sys.prefix
    yield from (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    yield from list_site_folders()
    yield from (path for path in sys.path if PurePath(path).name in _PACKAGE_FOLDERS)
    yield str(Path(pytest_loop.__file__).parent)
    yield sys.executable
    library, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    if library and folder:
        yield f"{folder}/{library}"


def list_git_paths(root: Path) -> tuple[str, ...]:
    """Return the hooks and the configuration of the project's repository, which make git run programs."""
    for folder in (root, *root.parents):
        if (folder / GIT_FOLDER).exists():
            git = _find_git_folder(folder / GIT_FOLDER)
            common = _read_pointer(git / "commondir", git) or git
            paths = (common / "hooks", common / "config", git / "config.worktree")
            return tuple(os.path.realpath(path) for path in paths if path.exists())
    return ()


def _find_git_folder(path: Path) -> Path:
    """Return the folder of a repository; in a worktree, `.git` is a file that names it."""
    return path if path.is_dir() else _read_pointer(path, path.parent) or path


def _read_pointer(file: Path, base: Path) -> Path | None:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return base / text.removeprefix("gitdir:").strip()


class WriteWatch:
    """Watch the paths that a fence would keep read-only, to find those that sessions write."""

    def __init__(self, project: SealedFiles) -> None:
        self._root = project.root
        sealed = project.list_sealed_files()
        folders = {folder for path in sealed for folder in list_parents(path)}
        root = project.root.resolve()
        names = (*sealed, *folders, *list_environment_paths(root), *list_git_paths(root))
        self._stamps = {name: self._read_stamp(name) for name in names}

    def find_written_paths(self) -> tuple[str, ...]:
        """Return the changed paths, relative to the project or absolute; a folder has a slash at its end."""
        changed = (name for name, stamp in self._stamps.items() if self._read_stamp(name) != stamp)
        return tuple(sorted(f"{name}/" if (self._root / name).is_dir() else name for name in changed))

    def _read_stamp(self, name: str) -> Stamp | None:
        return read_stamp(os.path.join(self._root, name))  # noqa: PTH118 - called for many files
