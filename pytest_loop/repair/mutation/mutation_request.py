"""The messages between the process that runs mutants and its caller."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_SECONDS = 60.0


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
    """The result of a run: `tried` of all `mutants` fitted into the time."""

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
        """Say in one line how many mutants the tests noticed."""
        rest = self.mutants - self.tried
        more = f"; {rest:,} more did not fit into the time" if rest else ""
        return (
            f"score {self.score:.2f}: {self.killed:,} of {self.tried:,} mutants killed by {self.tests:,} tests "
            f"in {self.seconds:.1f} s{more}"
        )
