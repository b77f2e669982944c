"""The messages between the search process and its caller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pytest_loop.repair.editable_files import ALL_PYTHON_FILES


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RepairRequest(_Frozen):
    """A request to repair failing tests, with its limits."""

    folder: Path
    pytest_arguments: tuple[str, ...] = ()
    """Paths to collect, and the project's own options."""
    allow: tuple[str, ...] = ALL_PYTHON_FILES
    """Files that may be edited, as .gitignore patterns relative to the folder."""
    failing: tuple[str, ...] = ()
    """Node ids of the tests to turn green; empty: all that fail."""
    seconds: float = Field(default=60.0, gt=0)
    """Limit of the whole search, which may be exceeded: trials of edits get at least a fifth of it."""
    candidates: int = Field(default=100_000, ge=1)
    seconds_after_green: float = Field(default=3.0, ge=0)
    """Time to search for alternatives after the first edit that turns all tests green."""
    workers: int | None = Field(default=None, ge=1)
    localise_only: bool = False
    share: tuple[int, int] = (1, 1)
    """The number of the share of the edits that is tried, and how many shares there are."""


class SuspiciousLine(_Frozen):
    """A line and its suspicion score."""

    path: str
    line: int
    score: float


class Patch(_Frozen):
    """A plausible edit of one file, with the tests it fixed and those that still fail."""

    path: str
    line: int
    template: str
    description: str
    before: str
    after: str
    diff: str
    fixed: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    rank: tuple[float, ...] = ()
    """Sorts the edits of one round, best first."""


class SearchPlan(_Frozen):
    """The plan of a search, in one sentence."""

    kind: str = "plan"
    plan: str


class RepairResult(_Frozen):
    """The result of a search."""

    kind: str = "result"
    localised: tuple[SuspiciousLine, ...] = ()
    patches: tuple[Patch, ...] = ()
    """Alternative edits of the files on disk, best first."""
    steps: tuple[Patch, ...] = ()
    """The best edits in sequence, each on top of the ones before it."""
    remaining: tuple[str, ...] = ()
    """Requested tests that still fail after all steps."""
    failing: tuple[str, ...] = ()
    passing: int = 0
    restricted_tests: tuple[str, ...] = ()
    """Tests with unknown results, because the sandbox kept them from changing files of the project."""
    tried: int = 0
    crash_count: int = 0
    """Trials whose process ended early: endless, out of memory, or by its own exit."""
    seconds: float = 0.0
    end_reason: str = ""
    """One of: green, partly green, exhausted, time, candidates, asked, localised, nothing fails, held back,
    no tests, nothing to edit."""
    problem: str = ""


def merge_shares(shares: Sequence[RepairResult]) -> RepairResult:
    """Return the edits of the best share, the alternatives of all, and the number of all trials."""
    best = min(shares, key=lambda share: (not share.steps, len(share.remaining), *(step.rank for step in share.steps)))
    is_out_of_time = not best.steps and any(share.end_reason == "time" for share in shares)
    return best.model_copy(
        update={
            "patches": tuple(sorted((patch for share in shares for patch in share.patches), key=lambda it: it.rank)),
            "tried": sum(share.tried for share in shares),
            "crash_count": sum(share.crash_count for share in shares),
            "seconds": max(share.seconds for share in shares),
            "end_reason": "time" if is_out_of_time else best.end_reason,
        }
    )
