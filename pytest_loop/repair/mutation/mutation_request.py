"""Request a run of mutants from a separate process, and read its result."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pytest_loop.errors import LoopError
from pytest_loop.processes.child import CannotStartError, Command, run_command

DEFAULT_SECONDS = 60.0
_ENGINE = "pytest_loop.repair.mutation"
_OVERHEAD = 60.0  # seconds for collection and for mutants that are running at the end
_WITHOUT_THIS_PLUGIN = ("-p", "no:agent_loop", "--continue-on-collection-errors")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MutationRequest(_Frozen):
    """A request to mutate files, with its limits."""

    folder: Path
    paths: tuple[str, ...] = ()
    """Files and folders to mutate, relative to the folder; empty: all files that the tests import."""
    pytest_arguments: tuple[str, ...] = ()
    seconds: float = Field(default=DEFAULT_SECONDS, gt=0)
    workers: int | None = Field(default=None, ge=1)


class Survivor(_Frozen):
    """A mutant that no test noticed, and how many tests execute its line."""

    path: str
    line: int
    change: str
    tests: int

    def describe(self) -> str:
        """Describe the mutant in one line."""
        if not self.tests:
            return f"{self.change}: no test executes this line"
        return f"{self.change}: {self.tests} test{'s' if self.tests > 1 else ''} executed it and passed"


class MutationResult(_Frozen):
    """The result of running mutants: `tried` of all `mutants` fitted into the time."""

    mutants: int = 0
    tried: int = 0
    killed: int = 0
    survivors: tuple[Survivor, ...] = ()
    tests: int = 0
    """Tests that passed before any change; only these can notice a mutant."""
    seconds: float = 0.0
    problem: str = ""

    @property
    def score(self) -> float:
        return self.killed / self.tried if self.tried else 0.0

    def summarise(self) -> str:
        """Return one line that says how many mutants the tests noticed."""
        rest = self.mutants - self.tried
        more = f"; {rest:,} more did not fit into the time" if rest else ""
        return (
            f"score {self.score:.2f}: {self.killed:,} of {self.tried:,} mutants killed by {self.tests:,} tests "
            f"in {self.seconds:.1f} s{more}"
        )


class MutationError(LoopError):
    """Mutants could not be run."""


def measure_mutants(request: MutationRequest) -> MutationResult:
    """Run the mutants; raise `MutationError` if that is impossible or there is nothing to mutate."""
    request = request.model_copy(update={"pytest_arguments": (*_WITHOUT_THIS_PLUGIN, *request.pytest_arguments)})
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as home:
        folder = Path(home)  # the project's own folder could replace installed modules
        request_file, result_file = folder / "request.json", folder / "result.json"
        request_file.write_text(request.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", _ENGINE, str(request_file), str(result_file)]
        try:
            completed = run_command(Command(command, folder, request.seconds + _OVERHEAD, ends_detached=True))
        except CannotStartError as error:
            raise MutationError(str(error)) from None
        if not result_file.exists():
            lines = completed.output.strip().splitlines()[-1:]
            raise MutationError(f"no mutant could be run: the tests could not be collected ({' '.join(lines)})")
        result = MutationResult.model_validate_json(result_file.read_bytes())
    if result.problem:
        raise MutationError(f"no mutant could be run: {result.problem}")
    return result
