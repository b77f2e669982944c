"""Restrict a fork that runs edited code: no output, no signals to others, no writes outside its folder, less memory.

An edit under trial may delete the wrong folder. An audit hook refuses actions of Python code and names them; Landlock
also restricts C code and child programs. Where the kernel lacks Landlock, a child program is not restricted, but it
ends with its fork.
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pytest_loop.processes import landlock
from pytest_loop.processes.process_tree import die_with_parent

REFUSAL = "a trial may not"
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events that change files, with the positions of the changed paths among their arguments.
_PATH_ARGUMENTS = {
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.rename": (0, 1),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.mkdir": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "shutil.move": (0, 1),
    "shutil.copyfile": (1,),
}
_MEMORY_LIMIT = 1 << 30
_MAX_FORKS = 40


@contextmanager
def enter_project(folder: Path) -> Iterator[Path]:
    """Let this process run a project's tests without leaving files in the project; yield a temporary folder."""
    die_with_parent()
    _disable_bytecode()
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as `python -m pytest` does
    with tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True) as home:
        temp_folder = Path(home).resolve()
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(temp_folder / "hypothesis")  # its default is in the project
        yield temp_folder


def _disable_bytecode() -> None:
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def enter_sandbox(temp_folder: Path) -> None:
    """Restrict this process to its temporary folder; it must be a new fork that leads its own process group."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _limit_memory()
    for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT", "HYPOTHESIS_STORAGE_DIRECTORY"):
        os.environ[name] = str(temp_folder)
    tempfile.tempdir = str(temp_folder)
    _disable_bytecode()
    landlock.restrict_writes((temp_folder, Path("/dev")))
    sys.addaudithook(AuditGuard(temp_folder))


def _limit_memory() -> None:
    """Allow a gigabyte on top of the memory in use, and no core file."""
    with suppress(ValueError, OSError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_LIMIT, resource.RLIM_INFINITY))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class AuditGuard:
    """An audit hook that refuses file changes outside the temporary folder, signals to others, and too many forks."""

    def __init__(self, temp_folder: Path) -> None:
        self._allowed = (str(temp_folder) + os.sep, os.devnull, "/dev/", "/proc/self/")
        self._is_checking = False
        self._fork_count = mmap.mmap(-1, 1)  # shared with all descendants

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITE_FLAGS:
                self._check_path(arguments[0])
        elif event in _PATH_ARGUMENTS:
            for position in _PATH_ARGUMENTS[event]:
                self._check_path(arguments[position])
        elif event in ("os.kill", "os.killpg"):
            _check_signal(event, arguments[0])
        elif event in ("os.fork", "os.forkpty"):
            if self._fork_count[0] >= _MAX_FORKS:
                raise PermissionError(f"{REFUSAL} fork more than {_MAX_FORKS} times")
            self._fork_count[0] += 1

    def _check_path(self, path: object) -> None:
        if isinstance(path, int) or self._is_checking:
            return
        self._is_checking = True
        try:
            name = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]  # else TypeError
        finally:
            self._is_checking = False
        if not f"{name}{os.sep}".startswith(self._allowed):
            raise PermissionError(f"{REFUSAL} change {name}")


def _check_signal(event: str, pid: int) -> None:
    if pid in (0, -1, os.getppid()) and not (event == "os.kill" and pid == os.getpid()):
        raise PermissionError(f"{REFUSAL} send signals to {pid}")
