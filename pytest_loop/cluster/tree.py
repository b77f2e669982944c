"""The trees of a host: kept between evaluations, and rebuilt from pieces that are stored by their hash."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path

from pytest_loop.cluster.job import Job
from pytest_loop.workspace.file_tree import FileEntry, FileKind, FileTree, Stamp, list_parents, make_stamp, read_stamp
from pytest_loop.workspace.file_writer import remove_path, write_entry

Contents = Mapping[str, bytes]
_MAX_DAYS = {"pieces": 2, "trees": 2, "environments": 7}
# The files that this process has read or written in each tree, with their stamps.
_KNOWN_FILES: dict[Path, dict[str, tuple[Stamp, FileEntry]]] = {}
_FOLDER_MODE = 0o755


def find_base() -> Path:
    """Return the folder of this user on this host that holds all pieces and trees."""
    return Path(tempfile.gettempdir()).resolve() / f"pytest-loop-cluster-{os.getuid()}"


def find_piece_folder() -> Path:
    """Return the folder of pieces."""
    return find_base() / "pieces"


def make_folders() -> None:
    """Make the folders of pieces and trees; raise an error if another user made them."""
    for folder in (find_base(), find_piece_folder(), find_base() / "trees"):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")


# -- pieces


def compute_hash(data: bytes) -> str:
    """Return the name of a piece."""
    return hashlib.sha256(data).hexdigest()


def store_pieces(contents: Contents) -> None:
    """Store pieces under their hashes."""
    make_folders()
    for digest, data in contents.items():
        draft = find_piece_folder() / f"{uuid.uuid4().hex}.tmp"
        try:
            draft.write_bytes(data)
            draft.replace(find_piece_folder() / digest)
        finally:
            draft.unlink(missing_ok=True)


def read_piece(digest: str) -> bytes | None:
    """Return a piece, or None if it is not there; a damaged one is deleted."""
    path = find_piece_folder() / digest
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if compute_hash(data) == digest:
        return data
    path.unlink(missing_ok=True)
    return None


def load_files(job: Job) -> FileTree | None:
    """Return the list of files of a job, or None if its base is not there."""
    try:
        return FileTree.from_json(job.changes.encode(), _load_list(job.base))
    except LookupError:
        return None


@lru_cache(maxsize=4)
def _load_list(digest: str) -> FileTree:
    data = read_piece(digest)
    if data is None:
        raise LookupError(digest)
    return FileTree.from_json(data)


# -- trees


@contextmanager
def claim_tree(root: str) -> Iterator[Path]:
    """Return a tree of the project at `root` that no other shard uses, and keep it until the end."""
    name = compute_hash(os.fsencode(root))[:12]
    for number in count(1):
        holder = find_base() / "trees" / f"{name}-{number}"
        lock = os.open(f"{holder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        try:
            if not holder.exists():
                _remove_old_files()
            # Modules of a project that is a package begin with the name of its folder.
            tree = holder / (Path(root).name or "root")
            tree.mkdir(parents=True, exist_ok=True)
            os.utime(holder)
            yield tree
        finally:
            os.close(lock)
        return


def _remove_old_files() -> None:
    """Delete pieces, trees and environments that were not used for some days; a host can get them again."""
    for name, days in _MAX_DAYS.items():
        oldest = time.time() - days * 24 * 3600
        for path in (find_base() / name).glob("*"):
            with suppress(OSError):
                if path.suffix != ".lock" and path.stat().st_mtime < oldest:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def update_tree(tree: Path, files: FileTree, always_read: Collection[str]) -> tuple[str, ...]:
    """Give the tree exactly these files and folders; return the pieces that are missing for that.

    A file with the stamp that this process has seen is not read again, except those of `always_read`.
    """
    used = {path.rpartition("/")[0] for path in files.entries}
    folders = files.folders.union(used, *map(list_parents, used))
    known = _KNOWN_FILES.setdefault(tree, {})
    current: dict[str, tuple[Stamp, FileEntry]] = {}
    present = set()
    for path, child in _list_tree(tree, folders):
        entry = files.entries.get(path)
        if entry is None:
            remove_path(tree, path)
            continue
        stamp = make_stamp(child.stat(follow_symlinks=False))
        is_known = known.get(path) == (stamp, entry) and path not in always_read
        if is_known or _has_content(child.path, entry, checks_mode=True):
            present.add(path)
            current[path] = stamp, entry
    _KNOWN_FILES[tree] = current
    missing = []
    for path, entry in files.entries.items():
        if path not in present:
            data = read_piece(entry.digest)
            if data is None:
                missing.append(entry.digest)
            elif not missing:
                write_entry(tree, path, entry, data)
                current[path] = make_stamp(os.lstat(tree / path)), entry
    for folder in files.folders:
        (tree / folder).mkdir(parents=True, exist_ok=True)
    return tuple(dict.fromkeys(missing))


def _list_tree(tree: Path, folders: Collection[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield files, links, and those folders that are not in `folders`."""
    queue = [""]
    while queue:
        folder = queue.pop()
        full_path = tree / folder
        if stat.S_IMODE(full_path.stat().st_mode) != _FOLDER_MODE:
            full_path.chmod(_FOLDER_MODE)
        with os.scandir(full_path) as children:
            for child in list(children):
                path = f"{folder}/{child.name}" if folder else child.name
                if path in folders and child.is_dir(follow_symlinks=False):
                    queue.append(path)
                else:
                    yield path, child


def read_stamps(tree: Path, paths: Collection[str]) -> dict[str, Stamp | None]:
    """Return the stamp of each path, which differs once a file was written."""
    return {path: read_stamp(f"{tree}/{path}") for path in paths}


def find_changed(tree: Path, entries: Mapping[str, FileEntry], paths: Collection[str]) -> list[str]:
    """Return the paths whose content differs from their entries."""
    return [path for path in paths if path in entries and not _has_content(str(tree / path), entries[path])]


def _has_content(path: str, entry: FileEntry, *, checks_mode: bool = False) -> bool:
    """Return whether a path is a file with this content, or a link to this target."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return entry.kind is FileKind.LINK and compute_hash(os.fsencode(Path(path).readlink())) == entry.digest
        if not stat.S_ISREG(mode) or entry.kind is not FileKind.FILE:
            return False
        has_mode = not checks_mode or stat.S_IMODE(mode) == entry.mode
        return has_mode and compute_hash(Path(path).read_bytes()) == entry.digest
    except OSError:
        return False
