"""Mark processes by a text in an environment variable, to find and end them later through `/proc` (Linux).

Child processes inherit the mark. One that starts with an empty environment has none: if it leaves its process group,
too, then it is not found and goes on running.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

MARK = "PYTEST_LOOP_CALL"
_SCAN_INTERVAL = 0.02


def add_mark(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return an environment with a further mark; nested commands carry the marks of all outer ones."""
    return {**env, MARK: f"{env[MARK]}:{mark}" if env.get(MARK) else mark}


def make_marked_environment(mark: str) -> dict[bytes, bytes]:
    """Return the environment of this process with a further mark, as bytes: decoding them would take time."""
    name, value = MARK.encode(), mark.encode()
    before = os.environb.get(name)
    return {**os.environb, name: before + b":" + value if before else value}


def compute_folder_mark(folder: Path) -> str:
    """Hash the path of a folder to a mark, by which a resumed run finds processes that a killed one has left."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]


@contextlib.contextmanager
def mark_descendants(mark: str) -> Iterator[None]:
    """Mark every process that is started in the block, and end them after it."""
    before = os.environ.get(MARK)
    os.environ.update(add_mark(os.environ, mark))
    try:
        yield
    finally:
        del os.environ[MARK]
        os.environ.update({} if before is None else {MARK: before})
        end_marked_processes(mark)


def end_marked_processes(mark: str) -> int:
    """End the processes that carry `mark`, and return their number.

    A process shows no environment for a moment while it executes another program, and it may start further ones: the
    search ends after two scans in a row without a result.
    """
    ended: set[int] = set()
    empty_scans = 0
    while empty_scans < 2:
        killed = {pid for pid in _find_marked_processes(mark) if _kill(pid)} - ended
        ended |= killed
        empty_scans = 0 if killed else empty_scans + 1
        time.sleep(_SCAN_INTERVAL)
    return len(ended)


def _find_marked_processes(mark: str) -> list[int]:
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for variable in (folder / "environ").read_bytes().split(b"\0"):
                name, _, value = variable.partition(b"=")
                if name == MARK.encode() and mark.encode() in value.split(b":"):
                    pids.append(int(folder.name))
    return [pid for pid in pids if pid != os.getpid()]


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True
