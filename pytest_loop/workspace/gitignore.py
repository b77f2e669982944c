"""The .gitignore files of a project, of the folders above it, and of this clone (`info/exclude`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_loop.store import disk
from pytest_loop.workspace.path_patterns import check_path, join_specs, parse_line

GIT_FOLDER = ".git"
FILE_NAME = ".gitignore"
_MAX_SIZE = 1 << 20


class IgnoreFile:
    """The .gitignore patterns of one folder.

    `folder` is a path relative to the project. For a folder above the project, it is a slash and the path from that
    folder down to the project: `/packages/app` for the folder that holds `packages`.
    """

    def __init__(self, folder: str, lines: Iterable[str]) -> None:
        is_outer = folder.startswith("/")
        self._prefix = f"{folder[1:]}/" if is_outer else ""
        self._start = len(folder) + 1 if folder and not is_outer else 0
        self._spec = join_specs(spec for line in lines if (spec := parse_line(line)) is not None)

    def decide(self, path: str) -> bool | None:
        """Return whether a path of the project is ignored, or None if no pattern matches it."""
        return check_path(self._spec, self._prefix + path[self._start :])


@dataclass(frozen=True)
class IgnoredPaths:
    """The lines of all .gitignore files by folder, as `IgnoreFile` names it.

    The files are read once, before the first edit: later edits of a .gitignore file hide nothing.
    """

    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def get_file(self, folder: str) -> IgnoreFile | None:
        lines = self.lines.get(folder)
        return IgnoreFile(folder, lines) if lines else None

    def get_outer_files(self) -> tuple[IgnoreFile, ...]:
        """Return the files above the project, the nearest first."""
        folders = sorted((folder for folder in self.lines if folder.startswith("/")), key=len)
        return tuple(IgnoreFile(folder, self.lines[folder]) for folder in folders)


def is_ignored(files: Iterable[IgnoreFile], path: str) -> bool:
    """Return whether a path is ignored: the first file with a matching pattern decides."""
    decisions = (file.decide(path) for file in files)
    return next((decision for decision in decisions if decision is not None), False)


def read_outer_lines(root: Path) -> dict[str, tuple[str, ...]]:
    """Read `info/exclude` and the .gitignore files above the project, by folder as in `IgnoredPaths`."""
    root = root.absolute()
    top = next((folder for folder in (root, *root.parents) if disk.path_exists(folder / GIT_FOLDER)), root)
    lines = {}
    for folder in (root, *root.parents)[: len(root.parts) - len(top.parts) + 1]:
        name = "" if folder == root else f"/{root.relative_to(folder).as_posix()}"
        folder_lines = read_lines(_find_exclude_file(top)) if folder == top else ()
        folder_lines += read_lines(folder / FILE_NAME) if folder != root else ()
        # Skip lines that ignore the whole project: its files must be scanned nevertheless.
        if folder_lines and not (name and IgnoreFile(name, folder_lines).decide("")):
            lines[name] = folder_lines
    return lines


def _find_exclude_file(top: Path) -> Path:
    """Return the path of `info/exclude`; a linked worktree has it in the repository that it is linked to."""
    git = top / GIT_FOLDER
    pointer = _read_first_line(git)
    if pointer.startswith("gitdir: "):
        git = top / pointer.removeprefix("gitdir: ")
        git = git / (_read_first_line(git / "commondir") or ".")
    return git / "info" / "exclude"


def _read_first_line(path: Path) -> str:
    return next(iter(read_lines(path)), "")


def read_lines(path: Path) -> tuple[str, ...]:
    """Read the lines of a file without empty ones and comments; a missing file has none."""
    try:
        with disk.open_for_reading(path) as file:
            data = file.read(_MAX_SIZE)
    except OSError:
        return ()
    lines = os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).replace("\r\n", "\n").split("\n")
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))
