"""Parents and children among processes (Linux)."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent() -> None:
    """End this process when its parent ends for any reason."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_children_with_parent() -> None:
    """End this process and its children when its parent ends for any reason."""
    parent = os.getppid()

    def end(*_: object) -> None:
        if os.getppid() != parent:  # the signal also arrives when a thread of the parent ends
            end_children()
            os._exit(1)

    signal.signal(signal.SIGUSR1, end)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)


def adopt_orphans() -> None:
    """Become the parent of processes that a descendant leaves behind, so that they can be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def can_find_children() -> bool:
    """Return whether the system lists the children of a process."""
    return _get_children_file(os.getpid()).exists()


def find_children(pid: int | None = None) -> set[int]:
    """Return the pids of the children of a process, or of this one; none if it has ended."""
    try:
        return {int(child) for child in _get_children_file(pid or os.getpid()).read_text(encoding="ascii").split()}
    except OSError:
        return set()


def _get_children_file(pid: int) -> Path:
    return Path(f"/proc/{pid}/task/{pid}/children")


def end_children() -> None:
    """Kill all children of this process, which include adopted orphans, until there are none."""
    with suppress(ChildProcessError):
        while True:
            for pid in find_children():
                os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _prctl(option: int, value: int) -> None:
    import ctypes  # takes milliseconds, and most sessions need none of this

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
