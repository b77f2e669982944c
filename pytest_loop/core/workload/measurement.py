"""Results of the cases of a workload, and the changes between two measurements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from functools import cached_property
from typing import Annotated

from pydantic import ConfigDict, Field

from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Value

SEVERITIES = ("blocking", "degraded", "minor", "critical", "major", "high", "medium", "low", "error", "warning", "info")


class CaseOutcome(str, Enum):
    """The outcome of a case; an infrastructure error says nothing about the artifact and is never a pass."""

    PASSED = "passed"
    FAILED = "failed"
    INFRASTRUCTURE = "infrastructure"


class Remark(Value):
    """One remark of an evaluator about an output."""

    message: str
    severity: str = ""
    location: str = ""

    def __str__(self) -> str:
        text = f"{self.severity}: {self.message}" if self.severity else self.message
        return f"{self.location}: {text}" if self.location else text


class CaseResult(Value):
    """The result of one case, from the cache if `reused`; `difference` compares the output with the expected one."""

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
    """Read the report of a case's item; every outcome but passed and failed means that it was not measured."""
    outcomes = {Outcome.PASSED: CaseOutcome.PASSED, Outcome.FAILED: CaseOutcome.FAILED}
    return CaseResult(
        id=case,
        outcome=outcomes.get(evidence.outcome, CaseOutcome.INFRASTRUCTURE),
        critiques=tuple(map(_parse_remark, evidence.findings)),
        difference=next((finding.detail for finding in evidence.findings if finding.detail), ""),
        text=evidence.text,
        seconds=evidence.seconds,
        reused=evidence.reused,
    )


def _parse_remark(finding: Finding) -> Remark:
    """Split the severity from the message of an evaluator."""
    severity, colon, message = finding.found.partition(": ")
    if colon and severity.casefold() in SEVERITIES:
        return Remark(message=message, severity=severity, location=finding.where)
    return Remark(message=finding.found, location=finding.where)


class Measurement(Value):
    """All cases of one iteration; iteration 0 is the baseline."""

    model_config = ConfigDict(frozen=True, extra="ignore", ignored_types=(cached_property,), defer_build=True)

    iteration: int
    results: tuple[CaseResult, ...]

    @cached_property
    def passing(self) -> frozenset[str]:
        return self._select_cases(CaseOutcome.PASSED)

    @cached_property
    def failing(self) -> frozenset[str]:
        return self._select_cases(CaseOutcome.FAILED)

    @cached_property
    def unmeasured(self) -> frozenset[str]:
        return self._select_cases(CaseOutcome.INFRASTRUCTURE)

    @property
    def has_converged(self) -> bool:
        return 0 < len(self.results) == len(self.passing)

    def _select_cases(self, outcome: CaseOutcome) -> frozenset[str]:
        return frozenset(result.id for result in self.results if result.outcome is outcome)

    def exclude_cases(self, cases: Collection[str]) -> Measurement:
        results = tuple(result for result in self.results if result.id not in cases)
        return Measurement(iteration=self.iteration, results=results)

    def __str__(self) -> str:
        total = len(self.results)
        share = f"{100 * len(self.passing) / total:.0f}" if total else "0"
        unmeasured = f", {len(self.unmeasured)} not measured" if self.unmeasured else ""
        return f"{len(self.passing)}/{total} passing ({share}%){unmeasured}"


class Change(Value):
    """The cases that changed: `fixed` pass now, `regressions` fail now, `lost` passed and could not be measured now."""

    fixed: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def compare_measurements(before: Measurement, after: Measurement) -> Change:
    """Compare two measurements case by case."""
    return Change(
        fixed=tuple(sorted(after.passing & before.failing)),
        regressions=tuple(sorted(after.failing & before.passing)),
        lost=tuple(sorted(after.unmeasured & before.passing)),
    )


def find_best(measurements: Sequence[Measurement]) -> Measurement:
    """Return the first measurement with the most passing cases."""
    return max(measurements, key=lambda measurement: len(measurement.passing))


def suggest_cases(
    measurement: Measurement, held_out_cases: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Suggest up to five failing cases to look at first, and up to three passing ones as guards."""
    visible = measurement.exclude_cases(held_out_cases)
    return tuple(sorted(visible.failing)[:5]), tuple(sorted(visible.passing)[:3])
