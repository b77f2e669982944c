"""Request a run of mutants from a separate process, and read its result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pytest_loop.errors import LoopError
from pytest_loop.repair.engine_process import EngineError, RunShares, run_engine

DEFAULT_SECONDS = 60.0
ENGINE = "pytest_loop.repair.mutation"
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
    share: tuple[int, int] = (1, 1)
    """The number of the share of the mutants that is run, and how many shares there are."""


class Survivor(_Frozen):
    """A mutant that no test noticed, and how many tests execute its line."""

    path: str
    line: int
    change: str
    tests: int

    def get_key(self) -> tuple[str, int, str]:
        """Return the key that survivors are sorted by."""
        return self.path, self.line, self.change

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


def merge_shares(shares: Sequence[MutationResult]) -> MutationResult:
    """Return the result of all shares; raise `MutationError` if they had other tests, or one could not be run."""
    if problem := next((share.problem for share in shares if share.problem), ""):
        raise MutationError(f"no mutant could be run: {problem}")
    if len(counts := sorted({share.tests for share in shares})) > 1:
        raise MutationError(f"{counts[0]:,} tests passed before any change, and {counts[-1]:,} elsewhere")
    survivors = (survivor for share in shares for survivor in share.survivors)
    return MutationResult(
        mutants=min(share.mutants for share in shares),  # those that met more mutants know of more duplicates
        tried=sum(share.tried for share in shares),
        killed=sum(share.killed for share in shares),
        survivors=tuple(sorted(survivors, key=Survivor.get_key)),
        tests=counts[0],
        seconds=max(share.seconds for share in shares),
    )


def measure_mutants(request: MutationRequest, run_shares: RunShares | None = None) -> MutationResult:
    """Run the mutants; raise `MutationError` if that is impossible or there is nothing to mutate.

    `run_shares` divides a request, and returns a result for each share.
    """
    request = request.model_copy(update={"pytest_arguments": (*_WITHOUT_THIS_PLUGIN, *request.pytest_arguments)})
    text = request.model_dump_json()
    try:
        texts = run_shares(ENGINE, text) if run_shares else [run_engine(ENGINE, text, request.seconds)]
    except EngineError as error:
        raise MutationError(f"no mutant could be run: {error}") from None
    return merge_shares([MutationResult.model_validate_json(text) for text in texts])
