"""Write and remove files below a root folder, never through a link, and replace whatever is in the way."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace.file_tree import FileEntry, FileKind

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def write_entry(root: Path, path: str, entry: FileEntry, data: bytes) -> None:
    """Write the file or the link that an entry describes."""
    if entry.kind is FileKind.LINK:
        _write(root, path, lambda folder, draft: os.symlink(data, os.fsencode(draft), dir_fd=folder))
    else:
        write_file(root, path, data, entry.mode)


def write_file(root: Path, path: str, data: bytes, mode: int) -> None:
    """Write a file atomically."""

    def write_draft(folder: int, draft: str) -> None:
        descriptor = os.open(draft, _NEW_FILE_FLAGS, 0o600, dir_fd=folder)
        try:
            disk.write_all(descriptor, data)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    _write(root, path, write_draft)


def remove_path(root: Path, path: str) -> None:
    """Delete a file or a folder, if it exists."""
    *parents, name = _split_path(path)
    with disk.translate_errors("remove", root / path, "try again"):
        try:
            with _open_folder(root, parents, create=False) as folder:
                _remove(folder, name, root / path)
        except OSError as error:
            if error.errno not in _NO_FOLDER_ERRORS:
                raise


def remove_empty_folder(root: Path, path: str) -> None:
    """Delete a folder, unless it holds anything."""
    *parents, name = _split_path(path)
    with suppress(OSError), _open_folder(root, parents, create=False) as folder:
        os.rmdir(name, dir_fd=folder)


def _write(root: Path, path: str, write_draft: Callable[[int, str], None]) -> None:
    *parents, name = _split_path(path)
    draft = f".pytest-loop-{uuid.uuid4().hex}"
    with (
        disk.translate_errors("put back", root / path, "try again"),
        _open_folder(root, parents, create=True) as folder,
    ):
        try:
            write_draft(folder, draft)
            if _is_folder(folder, name):
                _remove(folder, name, root / path)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def _split_path(path: str) -> list[str]:
    parts = path.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in path:
        raise StateError(f"expected the path of a file beneath the project, found {path!r}")
    return parts


@contextmanager
def _open_folder(root: Path, parts: list[str], *, create: bool) -> Iterator[int]:
    """Open a folder below the root; with `create`, replace whatever is in its way."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            inner = _make_folder(folder, part) if create else os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        if create:
            _make_accessible(folder)
        yield folder
    finally:
        os.close(folder)


def _make_folder(parent: int, name: str) -> int:
    """Open a folder, and create it if necessary."""
    _make_accessible(parent)
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in _NO_FOLDER_ERRORS:
            raise
        os.unlink(name, dir_fd=parent)
    os.mkdir(name, dir_fd=parent)
    return os.open(name, _FOLDER_FLAGS, dir_fd=parent)


def _make_accessible(folder: int) -> None:
    """Grant the owner all rights to a folder: they may have been removed to prevent a restore."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 != 0o700:
        with suppress(PermissionError):
            os.fchmod(folder, mode | 0o700)


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _remove(folder: int, name: str, path: Path) -> None:
    _make_accessible(folder)
    if _is_folder(folder, name):
        _make_all_accessible(path)
        shutil.rmtree(path)
    else:
        os.unlink(name, dir_fd=folder)


def _make_all_accessible(path: Path) -> None:
    folders = [os.fspath(path)]
    while folders:
        folder = folders.pop()
        with suppress(OSError):
            os.chmod(folder, 0o700)  # noqa: PTH101 - called for many folders
            with os.scandir(folder) as children:
                folders += [child.path for child in children if child.is_dir(follow_symlinks=False)]
