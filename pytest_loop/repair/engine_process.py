"""Run an engine, which imports the project, in a process of its own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_loop.errors import LoopError
from pytest_loop.processes.child import CannotStartError, Command, run_command
from pytest_loop.processes.fence import Fence

# Divides the request of an engine, and returns the result of each share; requests and results are JSON.
RunShares = Callable[[str, str], Sequence[str]]
_OVERHEAD = 60.0  # seconds for collection and for trials that are running at the end


class EngineError(LoopError):
    """An engine returned no result."""


def run_engine(engine: str, request: str, seconds: float, fence: Fence | None = None) -> str:
    """Return the result for a request, both as JSON; raise `EngineError` if there is none."""
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as home:
        folder = Path(home)  # the project's own folder could replace installed modules
        request_file, result_file = folder / "request.json", folder / "result.json"
        request_file.write_text(request, encoding="utf-8")
        command = [sys.executable, "-m", engine, str(request_file), str(result_file)]
        try:
            completed = run_command(Command(command, folder, seconds + _OVERHEAD, ends_detached=True, fence=fence))
        except CannotStartError as error:
            raise EngineError(str(error)) from None
        if not result_file.exists():
            lines = completed.output.strip().splitlines()[-1:]
            raise EngineError(f"the tests could not be collected ({' '.join(lines)})")
        return result_file.read_text(encoding="utf-8")
