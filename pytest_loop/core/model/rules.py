"""Rules, criteria, the evidence that items report, and the verdicts and score that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Value(BaseModel):
    """A frozen value that may be persisted or sent to another process; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Severity(str, Enum):
    """The effect of a failing rule: block, lower the score, or only be tracked."""

    FAIL = "fail"
    WARN = "warn"
    INFO = "info"

    @property
    def weight(self) -> Fraction:
        return _WEIGHTS[self]


_WEIGHTS = {Severity.FAIL: Fraction(2), Severity.WARN: Fraction(1), Severity.INFO: Fraction(0)}


class Phase(str, Enum):
    """A level of criteria: rules of A are judged in both phases, rules of B only in B."""

    A = "A"
    B = "B"

    def includes(self, other: Phase) -> bool:
        return other <= self


def infer_phase(rule_id: str) -> Phase:
    """Return the phase that a rule's id begins with, in either case; A if it names none."""
    return Phase.B if rule_id[:2].lower() == "b." else Phase.A


class Verdict(str, Enum):
    """The verdict on one rule."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    WARN = "warn"
    NA = "na"
    ERROR = "error"  # the check cannot be carried out: no statement about what is judged


class Proof(str, Enum):
    """The kind of proof behind a verdict, from strongest to weakest; the first three suffice to ship."""

    EXECUTION = "execution"
    MEASUREMENT = "measurement"
    OBSERVATION = "observation"
    REVIEW = "code review"
    ASSUMPTION = "assumption"

    @property
    def is_strong(self) -> bool:
        return self not in (Proof.REVIEW, Proof.ASSUMPTION)

    @property
    def is_executed(self) -> bool:
        """Whether a program decided."""
        return self in (Proof.EXECUTION, Proof.MEASUREMENT)

    @property
    def rank(self) -> int:
        return list(Proof).index(self)


class Outcome(str, Enum):
    """The outcome of one item, ordered from best to worst."""

    PASSED = "passed"
    ASSUMED = "assumed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    UNCHECKED = "unchecked"  # the check cannot be carried out
    FAILED = "failed"
    ERROR = "error"
    MISSING = "missing"

    @property
    def rank(self) -> int:
        return list(Outcome).index(self)


class Finding(Value):
    """One deviation: expected, found, and where (`file:line`).

    `detail` holds a few explaining lines, such as the end of a command's output. `expected` is empty if `found` is a
    complete sentence.
    """

    expected: str
    found: str
    where: str = ""
    detail: str = ""

    def __str__(self) -> str:
        text = f"expected {self.expected}, found {self.found}" if self.expected else self.found
        return f"{self.where}: {text}" if self.where else text


class Evidence(Value):
    """The report of one item about its rules.

    `inputs` is a hash of everything that the verdict depends on, or empty. `reused` means that it is from an earlier
    session. `tests` is how many tests a command ran, and how many of them passed; None if its output does not say so.
    `trials` is a request of a check that all workers of a cluster carry out together, as JSON.
    """

    outcome: Outcome
    text: str = ""
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    inputs: str = ""
    reused: bool = False
    tests: tuple[int, int] | None = None
    trials: str = ""

    def __str__(self) -> str:
        return "; ".join(map(str, self.findings)) or self.text


class Remedy(Value):
    """A command that fixes what a rule reports, and the folder to run it in."""

    command: str
    shell: bool = False
    folder: str = ""


class Rule(Value):
    """One requirement; a `guard` passed before the first edit and must keep passing, and is never the goal."""

    id: str
    description: str
    severity: Severity = Severity.FAIL
    weight: Fraction = Fraction(2)
    phase: Phase = Phase.A
    must_not: bool = False
    held_out: bool = False
    guard: bool = False
    repeat: int = 1
    need: str = "all"
    fix: str | None = None
    remedy: Remedy | None = None
    proof: Proof = Proof.EXECUTION

    @property
    def is_blocking(self) -> bool:
        return self.must_not or self.severity is Severity.FAIL


def sum_weights(rules: Iterable[Rule]) -> Fraction:
    """Return the exact sum of the weights; equal weights are counted first because adding fractions is slow."""
    counts = Counter(rule.weight.as_integer_ratio() for rule in rules)
    return sum((Fraction(top * count, bottom) for (top, bottom), count in counts.items()), Fraction(0))


INFERRED_FILE = "inferred.rules.yaml"  # name of the rule file that a run drafts in its folder
TESTS_SOURCE = "tests"  # name and source of the criteria for tests that no rule file mentions
DEFAULT_THRESHOLDS: dict[Phase, Fraction] = {Phase.A: Fraction(4, 5), Phase.B: Fraction(9, 10)}


class Criteria(Value):
    """A named set of rules with the score threshold of each phase."""

    name: str
    source: str
    version: int = 1
    thresholds: dict[Phase, Fraction] = Field(default_factory=lambda: dict(DEFAULT_THRESHOLDS))
    rules: tuple[Rule, ...] = ()

    def get_active_rules(self, phase: Phase) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if phase.includes(rule.phase))


class SessionPlan(Value):
    """The rules that a session judges, and the items that decide them.

    - `criteria`, `items`: all rules, and the keys of rules (`source::id`) of each selected item.
    - `checks`: the checks of rule files as they are written there, by key.
    - `judges`: files that checks need: their functions and schemas, and rule files that others extend.
    - `command_files`: files that commands name; they may belong to the product.
    - `documents`: the sources whose checks can read a document, with the path that each names, or an empty text.
    - `obstacles`: why checks cannot be carried out here, as far as that is known without running them.
    - `replaced_tests`: test functions whose code is not found in their source file.
    - `doctest_sources`: modules whose only tests are in their docstrings.
    - `shards`: the items of each shard of a divided session.
    """

    criteria: tuple[Criteria, ...] = ()
    items: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    checks: dict[str, Any] = Field(default_factory=dict)
    judges: tuple[str, ...] = ()
    command_files: tuple[str, ...] = ()
    documents: dict[str, str] = Field(default_factory=dict)
    obstacles: dict[str, str] = Field(default_factory=dict)
    replaced_tests: tuple[str, ...] = ()
    doctest_sources: tuple[str, ...] = ()
    shards: tuple[tuple[str, ...], ...] = ()


class Result(NamedTuple):
    """The verdict of one rule with its reason; a NamedTuple because there may be thousands."""

    rule: Rule
    verdict: Verdict
    details: str = ""
    evidence: tuple[Evidence, ...] = ()

    @property
    def is_blocking(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR) and self.rule.is_blocking

    @property
    def is_assumed(self) -> bool:
        """Whether it waits for a person to confirm it."""
        return self.verdict is Verdict.NA and any(piece.outcome is Outcome.ASSUMED for piece in self.evidence)

    @property
    def is_unverified(self) -> bool:
        return self.is_assumed and self.rule.is_blocking


@dataclass(frozen=True)
class CriteriaScore:
    """The verdicts of one set of criteria in one phase, and their score."""

    criteria: str
    source: str
    phase: Phase
    threshold: Fraction
    earned: Fraction
    possible: Fraction
    total: int
    results: tuple[Result, ...]

    @property
    def score(self) -> Fraction:
        return self.earned / self.possible if self.possible else Fraction(1)

    @cached_property
    def not_passed(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.verdict is not Verdict.PASS)

    @cached_property
    def blockers(self) -> tuple[Result, ...]:
        return tuple(result for result in self.not_passed if result.is_blocking)

    @property
    def passed(self) -> bool:
        return self.score >= self.threshold and not self.blockers

    @cached_property
    def unverified(self) -> tuple[Result, ...]:
        """The blocking rules that wait for a person: a plain session does not succeed with them."""
        return tuple(result for result in self.not_passed if result.is_unverified)

    def select_results(self, verdict: Verdict) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.verdict is verdict)
