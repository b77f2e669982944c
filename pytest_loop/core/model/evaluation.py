"""The result of one evaluation, and the critique made from it."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction

from pydantic import Field

from pytest_loop.core.model.rules import Finding, Phase, Severity, Value, Verdict


class Complaint(Value):
    """A rule that does not pass, with its message."""

    id: str
    severity: Severity = Severity.FAIL
    message: str = ""


class RuleResult(Value):
    """The verdict of one rule in one evaluation; `more` counts the findings that were not kept."""

    id: str
    verdict: Verdict
    details: str = ""
    findings: tuple[Finding, ...] = ()
    more: int = 0
    signature: str = ""


class SealFinding(Value):
    """One sign that the judge was tampered with."""

    kind: str
    path: str = ""
    rule: str = ""
    detail: str = ""


class Seal(Value):
    """The sealed files of a run, and the state of its tests before the first edit.

    `files` is the hash of the list of all files, `site` that of the modules which every interpreter loads first.
    `unstable` rules differed between two baselines, `unjudged` ones were skipped or expected to fail. `outputs` are
    written by sessions and not sealed.
    """

    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    files: str = ""
    site: str = ""
    plugins: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class Evaluation(Value):
    """One EVALUATE: the score, and every rule that does not pass; what is not listed passed.

    `artifact_hash` is the head of `artifact_sha256`, as other tools of the format write it. `held_out` is the score of
    the rules that no agent has seen.
    """

    artifact_hash: str = ""
    artifact_sha256: str = ""
    phase: Phase = Phase.A
    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    passed: bool
    earned: Fraction | None = None
    possible: Fraction | None = None
    total: int = 0
    passing: int = 0
    failed: tuple[Complaint, ...] = ()
    warnings: tuple[Complaint, ...] = ()
    rule_results: tuple[RuleResult, ...] = ()
    assumptions: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    held_out: float | None = None
    void: bool = False
    findings: tuple[SealFinding, ...] = ()

    @property
    def unmet(self) -> frozenset[str]:
        """The rules that failed or warned; a failing rule that is only tracked is none of them."""
        return frozenset(result.id for result in (*self.failed, *self.warnings))

    @property
    def is_clean(self) -> bool:
        """Whether it can be trusted, and nothing in it blocks."""
        return not self.void and not self.failed and not self.must_not

    @property
    def is_reached(self) -> bool:
        """Whether it reaches the threshold of its phase, and can be trusted."""
        return self.passed and self.is_clean


class Novelty(str, Enum):
    """How an issue compares with the iterations before."""

    NEW = "new"
    REPEATED = "repeated"
    REGRESSION = "regression"


class Issue(Value):
    """One thing to fix, made from one failed rule; `others` counts the rules that fail for the same cause."""

    rule_id: str
    problem: str
    fix_instruction: str
    expected_effect: str = ""
    severity: Severity = Severity.FAIL
    where: str = ""
    expected: str = ""
    found: str = ""
    lines: str = ""
    also: tuple[str, ...] = ()
    others: int = 0
    novelty: Novelty = Novelty.NEW
    times: int = 1


class Critique(Value):
    """At most five issues, the most important first; `left_out` counts the rules that are not among them.

    `tokens` is what it may cost in a prompt, `suspects` are lines that look wrong.
    """

    issues: tuple[Issue, ...] = ()
    left_out: int = 0
    tokens: int = 2_000
    suspects: tuple[str, ...] = ()
