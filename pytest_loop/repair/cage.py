"""What a fork may do: no output, no signals to others, no files outside its own temporary folder, so much memory.

An edit that is tried may exchange the folder that is deleted for another one. Two fences stand there: an audit hook,
which sees what Python does and can say so, and Landlock, which also holds what is written in C or in a program that a
fork starts. Where the kernel has no Landlock, such a program is not held, only ended with its fork.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_loop.repair import landlock

REFUSAL = "a trial may not"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {
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
_MEMORY = 1 << 30
_FORKS = 40
_PDEATHSIG = 1
_SUBREAPER = 36


def enter(home: Path) -> None:
    """Close the cage around this process, which was just forked and leads its own group."""
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)
    die_with_parent()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    limit(_MEMORY)
    for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT", "HYPOTHESIS_STORAGE_DIRECTORY"):
        os.environ[name] = str(home)
    tempfile.tempdir = str(home)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    landlock.fence((home, Path("/dev")))
    sys.addaudithook(Guard(home))


def limit(memory: int) -> None:
    """No more than so many bytes on top of what there is, and no core file."""
    with suppress(ValueError, OSError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent() -> None:
    """Let this process end with the one that forked it, however that ends (Linux)."""
    _control(_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of whatever a fork leaves behind, so that it can be found (Linux)."""
    _control(_SUBREAPER, 1)


def children() -> set[int]:
    """The processes whose parent this one is (Linux)."""
    try:
        return {int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    except OSError:
        return set()


def _control(option: int, value: int) -> None:
    with suppress(AttributeError, OSError):
        _LIBC.prctl(option, value, 0, 0, 0)


_LIBC = ctypes.CDLL(None)


class Guard:
    """An audit hook: raises where a file elsewhere would be changed, another process would get a signal, or a fork
    has become too many."""

    def __init__(self, home: Path) -> None:
        self._homes = (str(home) + os.sep, os.devnull, "/dev/", "/proc/self/")
        self._is_asking = False
        self._forked = mmap.mmap(-1, 1)  # shared by all that come of this process

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITING:
                self._check(arguments[0])
        elif event in _PATHS:
            for at in _PATHS[event]:
                self._check(arguments[at])
        elif event in ("os.kill", "os.killpg"):
            _check_signal(event, arguments[0])
        elif event in ("os.fork", "os.forkpty"):
            if self._forked[0] >= _FORKS:
                raise PermissionError(f"{REFUSAL} fork more than {_FORKS} times")
            self._forked[0] += 1

    def _check(self, path: object) -> None:
        if isinstance(path, int) or self._is_asking:
            return
        self._is_asking = True
        try:
            name = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        finally:
            self._is_asking = False
        if not f"{name}{os.sep}".startswith(self._homes):
            raise PermissionError(f"{REFUSAL} change {name}")


def _check_signal(event: str, pid: int) -> None:
    if pid in (0, -1, os.getppid()) and not (event == "os.kill" and pid == os.getpid()):
        raise PermissionError(f"{REFUSAL} send signals to {pid}")
