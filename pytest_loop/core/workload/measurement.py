"""What the cases of a workload came to, and what changed between two measurements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from functools import cached_property
from typing import Annotated

from pydantic import ConfigDict, Field

from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Value

SEVERITIES = ("blocking", "degraded", "minor", "critical", "major", "high", "medium", "low", "error", "warning", "info")


class CaseOutcome(str, Enum):
    """What became of a case; an error of the infrastructure says nothing about the artifact, and is never a pass."""

    PASSED = "passed"
    FAILED = "failed"
    INFRASTRUCTURE = "infrastructure"


class Remark(Value):
    """One thing that an evaluator says about an output."""

    message: str
    severity: str = ""
    location: str = ""

    def __str__(self) -> str:
        text = f"{self.severity}: {self.message}" if self.severity else self.message
        return f"{self.location}: {text}" if self.location else text


class CaseResult(Value):
    """One case: what it came to, what was said about it, and how its output differs from what was expected."""

    id: str
    outcome: CaseOutcome
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    critiques: tuple[Remark, ...] = ()
    difference: str = ""
    text: str = ""
    seconds: float = 0.0
    reused: bool = False

    @property
    def passed(self) -> bool:
        return self.outcome is CaseOutcome.PASSED


def read_case_result(case: str, evidence: Evidence) -> CaseResult:
    """What the report of a case's item says; one that did not report is not measured."""
    if evidence.outcome is Outcome.PASSED:
        outcome = CaseOutcome.PASSED
    elif evidence.outcome is Outcome.FAILED:
        outcome = CaseOutcome.FAILED
    else:
        outcome = CaseOutcome.INFRASTRUCTURE
    return CaseResult(
        id=case,
        outcome=outcome,
        critiques=tuple(_remark(one) for one in evidence.findings),
        difference=next((one.detail for one in evidence.findings if one.detail), ""),
        text=evidence.text,
        seconds=evidence.seconds,
        reused=evidence.reused,
    )


def _remark(finding: Finding) -> Remark:
    """What an evaluator said, with its severity told apart again."""
    word, sign, rest = finding.found.partition(": ")
    is_graded = bool(sign) and word.casefold() in SEVERITIES
    return Remark(
        message=rest if is_graded else finding.found, severity=word if is_graded else "", location=finding.where
    )


class Measurement(Value):
    """All cases of one iteration; iteration 0 is the baseline."""

    model_config = ConfigDict(frozen=True, extra="ignore", ignored_types=(cached_property,), defer_build=True)

    iteration: int
    results: tuple[CaseResult, ...]

    @cached_property
    def passing(self) -> frozenset[str]:
        return self._having(CaseOutcome.PASSED)

    @cached_property
    def failing(self) -> frozenset[str]:
        return self._having(CaseOutcome.FAILED)

    @cached_property
    def unmeasured(self) -> frozenset[str]:
        return self._having(CaseOutcome.INFRASTRUCTURE)

    @property
    def has_converged(self) -> bool:
        """All cases pass, and there are some."""
        return 0 < len(self.results) == len(self.passing)

    def _having(self, outcome: CaseOutcome) -> frozenset[str]:
        return frozenset(one.id for one in self.results if one.outcome is outcome)

    def exclude_cases(self, hidden: Collection[str]) -> Measurement:
        """What somebody may see who must not know the hidden cases."""
        return Measurement(iteration=self.iteration, results=tuple(one for one in self.results if one.id not in hidden))

    def __str__(self) -> str:
        total = len(self.results)
        share = f"{100 * len(self.passing) / total:.0f}" if total else "0"
        apart = f", {len(self.unmeasured)} not measured" if self.unmeasured else ""
        return f"{len(self.passing)}/{total} passing ({share}%){apart}"


class Change(Value):
    """The cases that pass now and failed before, and those that fail now and passed before.

    `lost` could not be measured any more: neither a regression nor a pass.
    """

    fixed: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def compare_measurements(before: Measurement, after: Measurement) -> Change:
    """What an edit did, case by case; a regression is named whatever else became better."""
    return Change(
        fixed=tuple(sorted(after.passing & before.failing)),
        regressions=tuple(sorted(after.failing & before.passing)),
        lost=tuple(sorted(after.unmeasured & before.passing)),
    )


def find_best(measurements: Sequence[Measurement]) -> Measurement:
    """The first one with the most passing cases."""
    return max(measurements, key=lambda one: len(one.passing))


def suggest_cases(measurement: Measurement, hidden: Collection[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The cases to look at first, and those that guard against regressions: up to five failing, three passing ones."""
    seen = measurement.exclude_cases(hidden)
    return tuple(sorted(seen.failing)[:5]), tuple(sorted(seen.passing)[:3])
