"""The nouns of the inference: what a task is after, what was found for it, where, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pytest_loop.inference.tool_purposes import Purpose


class Goal(str, Enum):
    """The class of criterion that a task asks for."""

    TEST_PASS = "test-pass"  # noqa: S105 - not a password
    COVERAGE = "coverage"
    TYPE_CLEAN = "type-clean"
    LINT_CLEAN = "lint-clean"
    BUILD_PASS = "build-pass"  # noqa: S105 - not a password
    REGRESSION_GATE = "regression-gate"
    IMPLEMENT_FEATURE = "implement-feature"
    DOCUMENTED = "documented"
    BUG_FIXED = "bug-fixed"


class Layer(str, Enum):
    """Who says how something is verified."""

    TASK = "the task"
    AGENT_FILES = "the files for agents"
    MANIFESTS = "the manifests"
    CI = "CI"
    RECORDS = "the project's records"


# Who is believed first; the task itself needs no belief.
TRUST_ORDER = (Layer.AGENT_FILES, Layer.CI, Layer.MANIFESTS, Layer.RECORDS)


class Confidence(str, Enum):
    """How sure an inferred criterion is; a low one is never adopted."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def find_weakest(given: Iterable[Confidence]) -> Confidence:
    """The least of several; that of nothing at all is low."""
    return max(given, key=list(Confidence).index, default=Confidence.LOW)


@dataclass(frozen=True)
class Source:
    """A place in the project."""

    path: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Candidate:
    """A command that somebody says verifies something.

    `family` is the language whose tools these are, where one manifest speaks for it. A guess is what such a project
    would usually have, although nothing says so; a hollow command says nothing whatever the code does. Of several in
    one manifest, the one with the lowest `rank` is the closest to what people run.
    """

    command: str
    purpose: Purpose
    layer: Layer
    source: Source
    folder: str = ""
    family: str = ""
    is_guess: bool = False
    is_trivial: bool = False
    rank: int = 0
