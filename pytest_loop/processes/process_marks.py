"""Finds again whatever was started with a mark in its environment, where the system shows that (Linux).

A process that leaves its group *and* starts with an empty environment is not found.
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
_MOMENT = 0.02


def add_mark(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """An environment whose processes `end_stragglers` will find; marks add up, for children of children."""
    return {**env, MARK: f"{env[MARK]}:{mark}" if env.get(MARK) else mark}


def make_marked_environment(mark: str) -> dict[bytes, bytes]:
    """The environment of this process with a mark; as bytes, which nobody has to decode and encode again."""
    name, value = MARK.encode(), mark.encode()
    before = os.environb.get(name)
    return {**os.environb, name: before + b":" + value if before else value}


def compute_folder_mark(folder: Path) -> str:
    """A mark that one folder of this machine has, today and tomorrow."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]


@contextlib.contextmanager
def mark_descendants(mark: str) -> Iterator[None]:
    """All that is started meanwhile carries the mark, and is ended with it."""
    before = os.environ.get(MARK)
    os.environ.update(add_mark(os.environ, mark))
    try:
        yield
    finally:
        del os.environ[MARK]
        os.environ.update({} if before is None else {MARK: before})
        end_marked_processes(mark)


def end_marked_processes(mark: str) -> int:
    """End the processes that carry `mark`, and those that they start meanwhile; gives how many there were.

    Who is just becoming another program shows no environment for a moment: nobody is left when two looks find nobody.
    """
    ended: set[int] = set()
    calm = 0
    while calm < 2:
        found = {pid for pid in _find_marked_processes(mark) if _kill(pid)} - ended
        ended |= found
        calm = 0 if found else calm + 1
        time.sleep(_MOMENT)
    return len(ended)


def _find_marked_processes(mark: str) -> list[int]:
    """Where the system does not show environments, nobody is found."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for variable in (folder / "environ").read_bytes().split(b"\0"):
                name, _, value = variable.partition(b"=")
                if name == MARK.encode() and mark.encode() in value.split(b":"):
                    found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True
