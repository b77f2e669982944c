"""Commands that a project names for its verification, and how far each is trusted."""

from __future__ import annotations

import shlex
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


# Tasks with these goals write tests.
GOALS_WITH_NEW_TESTS = (Goal.COVERAGE, Goal.IMPLEMENT_FEATURE)


class Layer(str, Enum):
    """The part of the project that names a command."""

    TASK = "the task"
    AGENT_FILES = "the files for agents"
    MANIFESTS = "the manifests"
    CI = "CI"
    RECORDS = "the project's records"


# The most trusted layer first; TASK is left out, because a command of the task is used without a comparison.
TRUST_ORDER = (Layer.AGENT_FILES, Layer.CI, Layer.MANIFESTS, Layer.RECORDS)


class Confidence(str, Enum):
    """How sure an inferred criterion is; a low one is never adopted."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def find_weakest(confidences: Iterable[Confidence]) -> Confidence:
    """Return the lowest confidence; LOW if there is none."""
    return max(confidences, key=list(Confidence).index, default=Confidence.LOW)


@dataclass(frozen=True)
class SourceLine:
    """A line in a file of the project."""

    path: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class CommandCandidate:
    """A command that verifies something, and the place that names it.

    `family` is the language of its manifest, or empty. A guess is the usual command of such a project, named nowhere. A
    trivial command has a result that does not depend on the code. Of several commands in one manifest, the lowest
    `rank` is the closest to what people run. `script` is what the command runs, if the manifest says it.
    """

    command: str
    purpose: Purpose
    layer: Layer
    source: SourceLine
    folder: str = ""
    family: str = ""
    is_guess: bool = False
    is_trivial: bool = False
    rank: int = 0
    script: str = ""

    @property
    def is_solid(self) -> bool:
        """Whether the project names the command, and its result depends on the code."""
        return not (self.is_guess or self.is_trivial)

    @property
    def command_line(self) -> str:
        """The command line that runs the command from the root of the project."""
        return f"cd {shlex.quote(self.folder)} && {self.command}" if self.folder else self.command
