"""Puts files in their places beneath a folder: never through a link, whatever stands in the way."""

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

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def write_file(root: Path, path: str, data: bytes, mode: int) -> None:
    """Write a file, at once or not at all."""

    def write(folder: int, draft: str) -> None:
        descriptor = os.open(draft, _NEW, 0o600, dir_fd=folder)
        try:
            disk.write_all(descriptor, data)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    _put(root, path, write)


def write_link(root: Path, path: str, target: bytes) -> None:
    """Make a symbolic link, wherever it leads."""
    _put(root, path, lambda folder, draft: os.symlink(target, os.fsencode(draft), dir_fd=folder))


def remove_path(root: Path, path: str) -> None:
    """Delete whatever is there; where there is nothing, nothing happens."""
    *above, name = _parts(path)
    with _told("remove", root, path):
        try:
            with _entered(root, above, make=False) as folder:
                _clear(folder, name, root / path)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise


def remove_empty_folder(root: Path, path: str) -> None:
    """Delete a folder that holds nothing; any other one stays."""
    *above, name = _parts(path)
    with suppress(OSError), _entered(root, above, make=False) as folder:
        os.rmdir(name, dir_fd=folder)


def _put(root: Path, path: str, write: Callable[[int, str], None]) -> None:
    *above, name = _parts(path)
    draft = f".pytest-loop-{uuid.uuid4().hex}"
    with _told("put back", root, path), _entered(root, above, make=True) as folder:
        try:
            write(folder, draft)
            if _is_folder(folder, name):
                _clear(folder, name, root / path)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in path:
        raise StateError(f"expected the path of a file beneath the project, found {path!r}")
    return parts


@contextmanager
def _told(doing: str, root: Path, path: str) -> Iterator[None]:
    with disk.translate_errors(doing, root / path, "try again"):
        yield


@contextmanager
def _entered(root: Path, parts: list[str], *, make: bool) -> Iterator[int]:
    """A descriptor of the folder; where it is to be made, what is in its way is removed."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            inner = _made(folder, part) if make else os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        if make:
            _open_up(folder)
        yield folder
    finally:
        os.close(folder)


def _made(outer: int, name: str) -> int:
    _open_up(outer)
    try:
        return os.open(name, _FOLDER, dir_fd=outer)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=outer)
        return os.open(name, _FOLDER, dir_fd=outer)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        os.unlink(name, dir_fd=outer)
    os.mkdir(name, dir_fd=outer)
    return os.open(name, _FOLDER, dir_fd=outer)


def _open_up(folder: int) -> None:
    """Somebody may have closed it to keep a file from coming back."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 != 0o700:
        with suppress(PermissionError):
            os.fchmod(folder, mode | 0o700)


def _is_folder(folder: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode)


def _clear(folder: int, name: str, path: Path) -> None:
    _open_up(folder)
    if _is_folder(folder, name):
        _open_all(path)
        shutil.rmtree(path)
    else:
        os.unlink(name, dir_fd=folder)


def _open_all(path: Path) -> None:
    waiting = [os.fspath(path)]
    while waiting:
        one = waiting.pop()
        with suppress(OSError):
            os.chmod(one, 0o700)  # noqa: PTH101 - there may be many
            with os.scandir(one) as found:
                waiting += [inner.path for inner in found if inner.is_dir(follow_symlinks=False)]
