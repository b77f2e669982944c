"""Run pytest at a terminal of its own, and answer its questions."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

# The answer to each question, found by a part of its text; a function does something first.
Answers = dict[str, str | Callable[[], str]]
_TIME_LIMIT = 120


def run_at_terminal(project: Path, arguments: tuple[str, ...], answers: Answers) -> tuple[int, str]:
    """Run pytest at a terminal, answer its questions, and return its exit code and output."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments])
    output, answered, deadline = "", 0, time.monotonic() + _TIME_LIMIT
    while True:
        if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
            output += f"\n(killed after {_TIME_LIMIT} s; a question without an answer?)"
            break
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        output += data.decode("utf-8", "replace")
        for question, answer in answers.items():
            if question in output[answered:]:
                answered = len(output)
                text = answer if isinstance(answer, str) else answer()
                os.write(terminal, text.encode() + b"\n")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output
