"""Rebuild compiled and generated files with `loop_build`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pytest_loop.processes.child import CannotStartError, Command, Ending, run_command
from pytest_loop.processes.fence import Fence

_MAX_OUTPUT = 500


def build_files(
    command: str,
    folder: Path,
    timeout: float,
    fence: Fence | None = None,
    should_continue: Callable[[], bool] | None = None,
) -> str:
    """Run the command without a shell; return what went wrong, with its last output, or nothing."""
    try:
        words = shlex.split(command)
        result = run_command(
            Command(words, folder, timeout, is_thorough=True, fence=fence, should_continue=should_continue)
        )
    except (CannotStartError, ValueError) as error:
        return f"loop_build = {command}: {error}"
    if result.ending is Ending.COMPLETED and result.exit_code == 0:
        return ""
    how = f"exit code {result.exit_code}" if result.ending is Ending.COMPLETED else f"ended {result.ending.value}"
    output = " / ".join(line for line in result.output.splitlines() if line.strip())[-_MAX_OUTPUT:]
    return f"loop_build = {command}: {how}" + (f": {output}" if output else "")
