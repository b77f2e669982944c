"""Rebuild compiled and generated files with `loop_build`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pytest_loop.processes.child import CannotStartError, Command, Ending, run_command
from pytest_loop.processes.fence import Fence

_MAX_OUTPUT = 500  # characters


def build_files(
    command: str,
    folder: Path,
    timeout: float,
    fence: Fence | None = None,
    should_continue: Callable[[], bool] | None = None,
) -> str:
    """Run the command without a shell; return what went wrong and its last output, or an empty text."""
    try:
        words = shlex.split(command)
        result = run_command(
            Command(words, folder, timeout, ends_detached=True, fence=fence, should_continue=should_continue)
        )
    except (CannotStartError, ValueError) as error:
        return f"loop_build = {command}: {error}"
    if result.ending is not Ending.COMPLETED:
        problem = f"ended {result.ending.value}"
    elif result.exit_code:
        problem = f"exit code {result.exit_code}"
    else:
        return ""
    output = " / ".join(line for line in result.output.splitlines() if line.strip())[-_MAX_OUTPUT:]
    return f"loop_build = {command}: {problem}" + (f": {output}" if output else "")
