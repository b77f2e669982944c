"""Reads what git is told to leave out of a project: by the .gitignore files above it, and in this clone alone."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_loop.store import disk
from pytest_loop.workspace.path_patterns import IgnoreFile

GIT = ".git"
IGNORES = ".gitignore"
_LARGEST = 1 << 20


def read_outer_lines(root: Path) -> dict[str, tuple[str, ...]]:
    """The lines that `Ignored` takes, but for those of the project's own folders."""
    root = root.absolute()
    top = next((one for one in (root, *root.parents) if disk.path_exists(one / GIT)), root)
    found = {}
    for folder in (root, *root.parents)[: len(root.parts) - len(top.parts) + 1]:
        way = _way(root, folder)
        told = (read_lines(_exclude(top)) if folder == top else ()) + (
            read_lines(folder / IGNORES) if folder != root else ()
        )
        # Who works in a folder that git ignores as a whole means its files nevertheless.
        if told and not (way and IgnoreFile(way, told).decide("")):
            found[way] = told
    return found


def _way(root: Path, folder: Path) -> str:
    """The way from a folder down to the root, with a slash in front; empty for the root itself."""
    return "" if folder == root else f"/{root.relative_to(folder).as_posix()}"


def _exclude(top: Path) -> Path:
    """Where git keeps the lines of this clone; in a linked work tree that is in the repository it is linked to."""
    git = top / GIT
    pointer = _first(git)
    if pointer.startswith("gitdir: "):
        git = top / pointer.removeprefix("gitdir: ")
        git = git / (_first(git / "commondir") or ".")
    return git / "info" / "exclude"


def _first(path: Path) -> str:
    return next(iter(read_lines(path)), "")


def read_lines(path: Path) -> tuple[str, ...]:
    """The lines of a file that say something; none where there is no file."""
    try:
        with disk.open_for_reading(path) as file:
            data = file.read(_LARGEST)
    except OSError:
        return ()
    found = os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).replace("\r\n", "\n").split("\n")
    return tuple(line for line in found if line.strip() and not line.startswith("#"))
