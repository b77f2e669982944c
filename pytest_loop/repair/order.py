"""What crosses between the engine's process and whoever started it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pytest_loop.repair.scope import EVERYTHING


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Order(_Frozen):
    """What to repair, and how long to try."""

    folder: Path
    words: tuple[str, ...] = ()
    """Words for pytest's command line: what to collect, and the project's own options."""
    allow: tuple[str, ...] = EVERYTHING
    """Files that may be edited, as patterns of .gitignore relative to the folder."""
    failing: tuple[str, ...] = ()
    """Node ids of the tests to turn green; empty: all that fail."""
    seconds: float = Field(default=60.0, gt=0)
    candidates: int = Field(default=100_000, ge=1)
    after: float = Field(default=3.0, ge=0)
    """How many seconds to go on after the first green one, for alternatives."""
    steps: int = Field(default=8, ge=1)
    """How many edits may follow one another, where one mends some of the tests and the next one others."""
    seed: int = 0
    changed: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Lines that were changed lately, by file."""
    workers: int | None = Field(default=None, ge=1)
    localise_only: bool = False


class Suspicious(_Frozen):
    """A line, and how suspicious it is."""

    path: str
    line: int
    score: float


class Patch(_Frozen):
    """A plausible edit of one file: the tests that it turned green, and those that it broke."""

    path: str
    line: int
    template: str
    description: str
    before: str
    after: str
    diff: str
    fixed: tuple[str, ...]
    broken: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    tokens: int
    score: float
    is_deletion: bool = False


class Progress(_Frozen):
    """Where the search is."""

    kind: str = "progress"
    tried: int
    known: int
    per_second: float
    seconds: float
    green: int


class Result(_Frozen):
    """What the search has found, best first."""

    kind: str = "result"
    localised: tuple[Suspicious, ...] = ()
    patches: tuple[Patch, ...] = ()
    """Edits of what is on disk, best first; each for itself."""
    steps: tuple[Patch, ...] = ()
    """The best edits one after another, each of what the ones before it have left."""
    remaining: tuple[str, ...] = ()
    """The tests to turn green that still fail after all steps."""
    failing: tuple[str, ...] = ()
    passing: int = 0
    held: tuple[str, ...] = ()
    """Tests that would change files of the project, from which they were kept: whether they pass is not known here."""
    tried: int = 0
    died: int = 0
    """Candidates whose process ended in the middle: endless, too greedy, or of its own will."""
    known: int = 0
    seconds: float = 0.0
    templates: dict[str, int] = Field(default_factory=dict)
    ended: str = ""
    """Why the search ended: green, partly green, exhausted, time, candidates, asked, localised, nothing fails,
    held back, no tests, nothing to edit."""
    problem: str = ""
