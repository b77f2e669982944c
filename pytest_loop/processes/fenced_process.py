"""Start processes with or without a fence, a sandbox in which files are read-only, and send them signals."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from pytest_loop.processes.fence import Fence
from pytest_loop.processes.process_tree import find_children

# After a signal ended its command, a shell exits with this number plus that of the signal; so does a fence.
_SIGNALLED = 128


class FencedProcess(subprocess.Popen[bytes]):
    """A process that runs a command inside of a fence, and ends after all processes inside.

    The only child of this process leads the process group of the command.
    """

    ends_descendants = True

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the command inside and its group; SIGKILL ends everything inside."""
        if self.returncode is not None:
            return
        inner = min(find_children(self.pid), default=None)
        if inner is None:
            os.killpg(self.pid, number)
        elif number == signal.SIGKILL:
            os.kill(inner, number)
        else:
            os.killpg(inner, number)

    def poll(self) -> int | None:
        code = super().poll()
        return None if code is None else _decode_exit(code)

    def wait(self, timeout: float | None = None) -> int:
        return _decode_exit(super().wait(timeout))


def _decode_exit(code: int) -> int:
    """Convert a shell's exit code for a signal to the negative signal number, as `Popen` returns it."""
    return _SIGNALLED - code if _SIGNALLED < code < _SIGNALLED + signal.NSIG else code


def open_process(
    words: Sequence[str] | str,
    fence: Fence | None,
    *,
    has_own_pids: bool = True,
    dies_with_parent: bool = False,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own; a list of words runs without a shell, a string with one.

    In a fence, `has_own_pids` hides all processes outside, and `dies_with_parent` ends the command with the calling
    thread. Without a fence, neither has an effect. `options` are arguments of `Popen`.
    """
    is_shell = isinstance(words, str)
    if fence is None:
        return subprocess.Popen(words, shell=is_shell, start_new_session=True, **options)
    inner = ["/bin/sh", "-c", words] if isinstance(words, str) else words
    wrapped = fence.wrap(inner, has_own_pids=has_own_pids, dies_with_parent=dies_with_parent)
    return FencedProcess(wrapped, start_new_session=True, **options)
