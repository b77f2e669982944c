"""Outer files that can change verdicts: the environment, and configuration above the project or in the home folder."""

from __future__ import annotations

import hashlib
import json
import os
import site
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from pytest_loop.store import disk

_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_DIST_INFO = ".dist-info"
_METADATA_SUFFIXES = (".egg-info", _DIST_INFO)
# Files that configure tools, in the folders above a project and in the home folder.
_CONFIGURATION_ABOVE = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"),
    *("ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", ".flake8", ".pylintrc", "pylintrc", ".coveragerc"),
    *("package.json", ".npmrc", "tsconfig.json", ".eslintrc", ".eslintrc.json", ".eslintrc.js", "eslint.config.js"),
)
_CONFIGURATION_IN_HOME = (
    *(".config/ruff/ruff.toml", ".config/ruff/.ruff.toml", ".config/ruff/pyproject.toml", ".config/mypy/config"),
    *(".mypy.ini", ".config/flake8", ".flake8", ".config/pylintrc", ".pylintrc", ".npmrc", ".config/git/ignore"),
)


def list_site_folders() -> list[str]:
    """Return the folders of this environment in which every interpreter looks for files to load at startup."""
    return sorted({*site.getsitepackages(), site.getusersitepackages()})


def find_opened_site_folders(opened: Iterable[str]) -> list[str]:
    """Return the folders of packages in which agents may install: those below the paths of `--loop-fence-allow`."""
    paths = [*opened]
    return [
        folder for folder in list_site_folders() if any(Path(folder).resolve().is_relative_to(path) for path in paths)
    ]


def is_path_file_of_project(path: Path, root: Path) -> bool:
    """Return whether a file in site-packages only adds folders of the project to `sys.path`: an editable install."""
    if path.suffix not in (".pth", ".egg-link"):
        return False
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return False
    folders = [line for line in lines if line and not line.startswith("#")]
    return all(Path(line).is_absolute() and Path(line).resolve().is_relative_to(root.resolve()) for line in folders)


def hash_site_files(opened: Iterable[str] = (), root: Path | None = None) -> str:
    """Hash the files that every interpreter of this environment loads at startup, except below opened paths.

    Editable installs of the project at `root` are left out too; metadata of the project that names plugins of pytest is
    included.
    """
    digest = hashlib.sha256()
    excluded = find_opened_site_folders(opened)
    for folder in (folder for folder in list_site_folders() if folder not in excluded):
        for path in sorted(Path(folder).glob("*")) if Path(folder).is_dir() else ():
            is_loaded = path.suffix == ".pth" or path.name in ("sitecustomize.py", "usercustomize.py")
            if is_loaded and not (root and is_path_file_of_project(path, root)):
                digest.update(f"{path}\0{disk.hash_file(path)}\0".encode())
    for path in _list_plugin_metadata(root) if root else ():
        digest.update(f"{path}\0{disk.hash_file(path)}\0".encode())
    return digest.hexdigest()


def is_in_project(path: Path, root: Path) -> bool:
    """Return whether a path is part of the project itself, and not of an environment inside of it."""
    prefixes = [Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)]
    inner_prefixes = [prefix for prefix in prefixes if not root.is_relative_to(prefix)]
    return path.is_relative_to(root) and not any(path.is_relative_to(prefix) for prefix in inner_prefixes)


def _list_plugin_metadata(root: Path) -> list[Path]:
    """Return the metadata in the project that names plugins of pytest; scans leave out some of its folders."""
    folders = [
        folder for pattern in ("", "*/") for suffix in _METADATA_SUFFIXES for folder in root.glob(f"{pattern}*{suffix}")
    ]
    paths = sorted(folder / "entry_points.txt" for folder in folders)
    return [path for path in paths if b"pytest11" in (disk.read_file(path) or b"")]


def find_changed_package_files(root: Path, since: int, opened: Iterable[str] = ()) -> list[str]:
    """Return the files of this environment that changed since a time in nanoseconds, outside of opened paths.

    Leave out bytecode, which sessions do not read there, and an editable install of the project. Return nothing if all
    files are younger: the environment is a different one, for example in a new container.
    """
    excluded = [*map(os.path.realpath, opened)]
    changed, has_older = _find_changed(_list_package_folders(root.resolve()), since)
    inside = (path for path in changed if not any(PurePath(path).is_relative_to(folder) for folder in excluded))
    return [path for path in sorted(inside) if not _is_editable_install(Path(path), root)] if has_older else []


def _list_package_folders(root: Path) -> list[str]:
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


def _find_changed(folders: list[str], since: int) -> tuple[list[str], bool]:
    """Return the files that changed, and whether any did not; one loop, because it visits thousands of files."""
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
    if path.parent.suffix != _DIST_INFO:
        return is_path_file_of_project(path, root)
    try:
        source = json.loads((path.parent / "direct_url.json").read_text(encoding="utf-8"))
        is_editable = source["dir_info"]["editable"] is True and source["url"] == root.resolve().as_uri()
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return is_editable and path.suffix != ".py" and not _adds_plugin(path)


def _adds_plugin(path: Path) -> bool:
    return path.name == "entry_points.txt" and "pytest11" in path.read_text(encoding="utf-8", errors="replace")


def hash_outer_configuration(root: Path) -> dict[str, str]:
    """Return the hashes of the configuration files outside of a project, by their paths."""
    return {str(path): disk.hash_file(path) for path in _list_configuration(root.resolve()) if path.is_file()}


def _list_configuration(root: Path) -> Iterator[Path]:
    for folder in root.parents:
        yield from (folder / name for name in _CONFIGURATION_ABOVE)
    yield from (Path.home() / name for name in _CONFIGURATION_IN_HOME)
