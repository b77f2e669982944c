"""The calls of the system that a crash may fall between: whole files, flushed folders, and errors put into words."""

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
# Nothing is there, or something that is not a file.
MISSING_FILE_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.ENXIO)
_NO_FOLDER_FLUSH = (errno.EINVAL, errno.ENOTSUP)
# A link is not followed, and a pipe does not make us wait for somebody who opens its other end.
_PLAIN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextmanager
def translate_errors(doing: str, path: Path, then: str = "go on with pytest --loop-resume") -> Iterator[None]:
    """An error of the system becomes a sentence: what cannot be done, why, and what to do about it."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "free the way")
        raise StateError(f"cannot {doing} {path}: {describe_error(error)}; {remedy}, then {then}") from None


def describe_error(error: OSError) -> str:
    """Why, in the words of the system, where those can be understood."""
    return "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file in one step: a reader sees the old content or the new one, also after a crash.

    Where it need not last (it can be made again), a failure of power may bring the old content back.
    """
    draft = path.with_name(f".{path.name}.tmp")
    with translate_errors("write", path):
        try:
            _write_draft(draft, data, _mode(path))
            os.replace(draft, path)  # noqa: PTH105 - counted by a test like the other calls of os
        except OSError:
            _remove(draft)
            raise
        if durable:
            flush_folder(path.parent)


def _write_draft(draft: Path, data: bytes, mode: int) -> None:
    _remove(draft)  # of a crash; made anew, so that nothing is ever written through a link
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, mode)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int:
    try:
        found = path.lstat().st_mode
    except OSError:
        return 0o644
    return stat.S_IMODE(found) if stat.S_ISREG(found) else 0o644


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - likewise


def remove_file(path: Path) -> None:
    """Delete a file, if it is there."""
    with translate_errors("remove", path):
        _remove(path)


def write_all(descriptor: int, data: bytes) -> None:
    """The system may take less than it is given."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def flush_folder(folder: Path) -> None:
    """A new name is safe once its folder is; some disks cannot be asked for that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_FLUSH:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """The folder with those above it, each safe before the next."""
    with translate_errors("make", folder):
        if folder.is_dir():
            return
        new = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for one in reversed(new):
            flush_folder(one.parent)


def path_exists(path: Path) -> bool:
    """Whether there is anything of that name; what we may not look at is."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno not in MISSING_FILE_ERRORS
    return True


def open_regular_file(path: Path, flags: int) -> int:
    """Open a file that is one: no folder, no pipe, no link to somewhere else."""
    descriptor = os.open(path, flags | _PLAIN, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


def open_for_reading(path: Path) -> BinaryIO:
    """A file for reading, if it is one."""
    return os.fdopen(open_regular_file(path, os.O_RDONLY), "rb")


def read_file(path: Path) -> bytes | None:
    """What a file holds; None where there is none, or something that is not one."""
    try:
        with open_for_reading(path) as file:
            return file.read()
    except OSError as error:
        if error.errno in MISSING_FILE_ERRORS:
            return None
        raise


def hash_file(path: Path) -> str:
    """SHA-256 of a file; empty where there is none."""
    data = read_file(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def truncate_file(path: Path, length: int, end: bytes = b"") -> None:
    """Keep the first `length` bytes, and put `end` after them."""
    with translate_errors("mend", path):
        descriptor = open_regular_file(path, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, length)
            os.lseek(descriptor, 0, os.SEEK_END)
            write_all(descriptor, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
