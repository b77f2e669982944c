"""File operations that survive a crash, and their errors as sentences."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pytest_loop.errors import StateError

_REMEDIES = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room in your quota",
    errno.EROFS: "make the disk writable",
    errno.EACCES: "give this user access",
    errno.EPERM: "give this user access",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "allow more open files",
    errno.EIO: "look after the disk",
    errno.EISDIR: "move that folder away",
    errno.ENOENT: "bring its folder back",
    errno.ENOTDIR: "move the file that is in the way of the folder",
    errno.EEXIST: "move the file that is in the way of the folder",
    errno.ELOOP: "move that link away",
}
# There is nothing at a path, or something that is not a regular file.
MISSING_FILE_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.ENXIO)
_UNSUPPORTED_FLUSH_ERRORS = (errno.EINVAL, errno.ENOTSUP)
# Do not follow a link, and do not wait for the other end of a pipe.
_SAFE_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextmanager
def translate_errors(action: str, path: Path, next_step: str = "go on with pytest-loop resume") -> Iterator[None]:
    """Raise `StateError` for an OSError: what cannot be done, why, and what to do about it."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "free the way")
        raise StateError(f"cannot {action} {path}: {describe_error(error)}; {remedy}, then {next_step}") from None


def describe_error(error: OSError) -> str:
    """Return the system's message for an error; for ELOOP, a clearer one."""
    return "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file in one step: readers see the old or the new content, also after a crash.

    Without `durable`, the old content may come back after a power failure.
    """
    temp_file = path.with_name(f".{path.name}.tmp")
    with translate_errors("write", path):
        try:
            _write_temp_file(temp_file, data, _get_mode(path))
            os.replace(temp_file, path)  # noqa: PTH105 - tests count the calls of os
        except OSError:
            _unlink(temp_file)
            raise
        if durable:
            flush_folder(path.parent)


def _write_temp_file(temp_file: Path, data: bytes, mode: int) -> None:
    _unlink(temp_file)  # left by a crash; a new file is never written through a link
    descriptor = os.open(temp_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS, mode)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _get_mode(path: Path) -> int:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return 0o644
    return stat.S_IMODE(mode) if stat.S_ISREG(mode) else 0o644


def _unlink(path: Path) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - tests count the calls of os


def remove_file(path: Path) -> None:
    """Delete a file, if it exists."""
    with translate_errors("remove", path):
        _unlink(path)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes: one call of `os.write` may write fewer."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def flush_folder(folder: Path) -> None:
    """Flush a folder, so that a new name in it survives a crash; some disks cannot flush folders."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_FLUSH_ERRORS:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, each flushed before the next."""
    with translate_errors("make", folder):
        if folder.is_dir():
            return
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in reversed(missing):
            flush_folder(path.parent)


def path_exists(path: Path) -> bool:
    """Return whether a path exists, or cannot be examined."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno not in MISSING_FILE_ERRORS
    return True


def is_same_file(path: Path, descriptor: int) -> bool:
    """Return whether a path still names an open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def open_regular_file(path: Path, flags: int) -> int:
    """Open a file; raise OSError for a folder, a pipe or a link."""
    descriptor = os.open(path, flags | _SAFE_FLAGS, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


def open_for_reading(path: Path) -> BinaryIO:
    """Open a regular file for reading."""
    return os.fdopen(open_regular_file(path, os.O_RDONLY), "rb")


def read_file(path: Path) -> bytes | None:
    """Read a file; return None if there is no regular file."""
    try:
        with open_for_reading(path) as file:
            return file.read()
    except OSError as error:
        if error.errno in MISSING_FILE_ERRORS:
            return None
        raise


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, or an empty string if there is none."""
    data = read_file(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def truncate_file(path: Path, length: int, end: bytes) -> None:
    """Keep the first `length` bytes of a file, and append `end`."""
    with translate_errors("repair", path):
        descriptor = open_regular_file(path, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, length)
            os.lseek(descriptor, 0, os.SEEK_END)
            write_all(descriptor, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
