"""Run mutants in a separate process, and read its result."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pytest_loop.errors import LoopError
from pytest_loop.processes.child import CannotStartError, Command, run_command
from pytest_loop.repair.mutation.mutation_request import MutationRequest, MutationResult

_ENGINE = "pytest_loop.repair.mutation"
_OVERHEAD = 60.0  # seconds for collection and for mutants that are running at the end
_WITHOUT_US = ("-p", "no:agent_loop", "--continue-on-collection-errors")


class MutationError(LoopError):
    """Mutants could not be run."""


def measure_mutants(request: MutationRequest) -> MutationResult:
    """Run the mutants; raise `MutationError` if that is impossible or there is nothing to mutate."""
    request = request.model_copy(update={"pytest_arguments": (*_WITHOUT_US, *request.pytest_arguments)})
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as home:
        folder = Path(home)  # not the project, whose modules could replace installed ones
        request_file, result_file = folder / "request.json", folder / "result.json"
        request_file.write_text(request.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", _ENGINE, str(request_file), str(result_file)]
        try:
            completed = run_command(Command(command, folder, request.seconds + _OVERHEAD, is_thorough=True))
        except CannotStartError as error:
            raise MutationError(str(error)) from None
        if not result_file.exists():
            lines = completed.output.strip().splitlines()[-1:]
            raise MutationError(f"no mutant could be run: the tests could not be collected ({' '.join(lines)})")
        result = MutationResult.model_validate_json(result_file.read_bytes())
    if result.problem:
        raise MutationError(f"no mutant could be run: {result.problem}")
    return result
