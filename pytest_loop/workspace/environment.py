"""Changes of installed packages while a run works: files that were written after its start."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path, PurePath

from pytest_loop.workspace.seal import is_path_file_of_project, list_site_folders

_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_METADATA_SUFFIX = ".dist-info"


def find_changed_packages(root: Path, since: int, opened: Iterable[str] = ()) -> list[str]:
    """Return the files of this environment that changed since a time in nanoseconds, outside of opened paths.

    Bytecode does not count: sessions do not read it there. An environment without an older file is another one, as in
    a new container. An editable install of the project changes nothing that judges.
    """
    excluded = [*map(os.path.realpath, opened)]
    changed, has_old = _list_changed(_list_folders(root.resolve()), since)
    inside = (path for path in changed if not any(PurePath(path).is_relative_to(folder) for folder in excluded))
    return [path for path in sorted(inside) if not _is_editable_install(Path(path), root)] if has_old else []


def _list_folders(root: Path) -> list[str]:
    """Return the folders of packages, and the whole environment if it lies in the project."""
    folders = {*list_site_folders(), *(path for path in sys.path if PurePath(path).name in _PACKAGE_FOLDERS)}
    prefix = Path(sys.prefix).resolve()
    if sys.prefix != sys.base_prefix and prefix != root and prefix.is_relative_to(root):
        folders.add(str(prefix))
    real = sorted({os.path.realpath(folder) for folder in folders})
    return [
        folder
        for folder in real
        if not any(PurePath(folder).is_relative_to(outer) for outer in real if outer != folder)
    ]


def _list_changed(folders: list[str], since: int) -> tuple[list[str], bool]:
    """Return the files that changed, and whether there are others; one loop, because it visits thousands of files."""
    changed: list[str] = []
    count = 0
    queue = [*folders]
    while queue:
        try:
            children = [*os.scandir(queue.pop())]
        except OSError:  # a folder that does not exist, or that this user may not read
            continue
        for child in children:
            if child.is_dir(follow_symlinks=False):
                if child.name != "__pycache__":
                    queue.append(child.path)
                continue
            count += 1
            status = child.stat(follow_symlinks=False)
            # Another link to a file also changes its ctime, and tools install by links.
            if status.st_ctime_ns > since and (status.st_nlink == 1 or status.st_mtime_ns > since):
                changed.append(child.path)
    return changed, count > len(changed)


def _is_editable_install(path: Path, root: Path) -> bool:
    """Return whether a file only makes the project itself importable."""
    if path.parent.suffix != _METADATA_SUFFIX:
        return is_path_file_of_project(path, root)
    try:
        source = json.loads((path.parent / "direct_url.json").read_text(encoding="utf-8"))
        is_editable = source["dir_info"]["editable"] is True and source["url"] == root.resolve().as_uri()
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return is_editable and path.suffix != ".py" and not _adds_plugin(path)


def _adds_plugin(path: Path) -> bool:
    return path.name == "entry_points.txt" and "pytest11" in path.read_text(encoding="utf-8", errors="replace")
