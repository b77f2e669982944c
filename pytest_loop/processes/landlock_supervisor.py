"""Supervise a command: end the processes that it leaves behind, and exit with its code.

If paths are given, Landlock (a part of the Linux kernel) lets the command write only there. The supervisor must start
quickly: it runs without site-packages, so this module may import nothing from there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pytest_loop.processes import landlock
from pytest_loop.processes.process_tree import adopt_orphans, end_children, end_children_with_parent

_CANNOT_RESTRICT, _CANNOT_START = 125, 127


def main(arguments: Sequence[str], *, dies_with_parent: bool) -> NoReturn:
    """Run the command after `--`, which may write only to the paths before it; without paths, it may write everywhere.

    With `dies_with_parent`, the command ends when the parent of this process ends.
    """
    end = arguments.index("--")
    adopt_orphans()
    if dies_with_parent:
        end_children_with_parent()
    pid = os.fork()
    if pid == 0:
        _become_command([Path(path) for path in arguments[:end]], arguments[end + 1 :])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _close_streams()
    while True:
        ended, status = os.wait()
        if ended == pid:
            break
    end_children()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _become_command(paths: Sequence[Path], words: Sequence[str]) -> NoReturn:
    os.setsid()
    code = _CANNOT_RESTRICT
    try:
        if not paths or landlock.restrict_writes(path for path in paths if path.exists()):
            code = _CANNOT_START
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # an interpreter ignores them, and its children would too
                signal.signal(number, signal.SIG_DFL)
            os.execvp(words[0], [*words])  # noqa: S606 - there is no shell to start
        print("Landlock cannot restrict this process", file=sys.stderr, flush=True)
    except OSError as error:
        print(f"cannot run {words[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _close_streams() -> None:
    """Close the command's streams in this process: a reader of these pipes must see them end with the command."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(3, 256)
