"""The nouns: rules, criteria, what an item reported, and what follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Value(BaseModel):
    """A frozen value that may be persisted or sent to another process; readers ignore unknown keys."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Severity(str, Enum):
    """What a failing rule does: block, lower the score, or only be tracked."""

    FAIL = "fail"
    WARN = "warn"
    INFO = "info"

    @property
    def weight(self) -> Fraction:
        return _WEIGHTS[self.value]


_WEIGHTS = {"fail": Fraction(2), "warn": Fraction(1), "info": Fraction(0)}


class Phase(str, Enum):
    """The level of the criteria: A is judged in A and in B, B only in B."""

    A = "A"
    B = "B"

    def includes(self, other: Phase) -> bool:
        return other <= self


class Verdict(str, Enum):
    """The answer of one rule."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    WARN = "warn"
    NA = "na"


class Proof(str, Enum):
    """What a verdict rests on, from the strongest to the weakest; the first three are enough to ship."""

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
        """Whether a program decided, which is told by files of its own."""
        return self in (Proof.EXECUTION, Proof.MEASUREMENT)

    @property
    def rank(self) -> int:
        return _PROOFS[self]


_PROOFS = {proof: rank for rank, proof in enumerate(Proof)}


class Outcome(str, Enum):
    """What became of one item; ordered from best to worst."""

    PASSED = "passed"
    ASSUMED = "assumed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    FAILED = "failed"
    ERROR = "error"
    MISSING = "missing"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {outcome: rank for rank, outcome in enumerate(Outcome)}


class Finding(Value):
    """One thing that is not as it should be: what was expected, what was found, and where (`file:line`).

    `detail` holds the few lines that explain it, such as the end of a command's output. `expected` is empty where
    `found` is a sentence that says both.
    """

    expected: str
    found: str
    where: str = ""
    detail: str = ""

    def __str__(self) -> str:
        text = f"expected {self.expected}, found {self.found}" if self.expected else self.found
        return f"{self.where}: {text}" if self.where else text


class Evidence(Value):
    """What one item reported about its rules.

    `inputs` is a hash of all that the verdict depends on, where that is known; `reused` says that it was not found now.
    """

    outcome: Outcome
    text: str = ""
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    inputs: str = ""
    reused: bool = False

    def __str__(self) -> str:
        return "; ".join(map(str, self.findings)) or self.text


class Remedy(Value):
    """A command that mends what a rule complains about, and the folder that it is run in."""

    command: str
    shell: bool = False
    folder: str = ""


class Rule(Value):
    """One thing judged."""

    id: str
    description: str
    severity: Severity = Severity.FAIL
    weight: Fraction = Fraction(2)
    phase: Phase = Phase.A
    must_not: bool = False
    holdout: bool = False
    repeat: int = 1
    need: str = "all"
    fix: str | None = None
    remedy: Remedy | None = None
    proof: Proof = Proof.EXECUTION

    @property
    def is_blocking(self) -> bool:
        return self.must_not or self.severity is Severity.FAIL


def sum_weights(rules: Iterable[Rule]) -> Fraction:
    """The exact sum; most of a thousand weights are the same, and fractions one by one take their time."""
    times = Counter(rule.weight.as_integer_ratio() for rule in rules)
    return sum((Fraction(above * count, below) for (above, below), count in times.items()), Fraction(0))


TESTS_SOURCE = "tests"  # the criteria of tests that no rule file names
DEFAULT_THRESHOLDS: dict[Phase, Fraction] = {Phase.A: Fraction(4, 5), Phase.B: Fraction(9, 10)}


class Criteria(Value):
    """A named set of rules with the score that each phase asks for."""

    name: str
    source: str
    version: int = 1
    thresholds: dict[Phase, Fraction] = Field(default_factory=lambda: dict(DEFAULT_THRESHOLDS))
    rules: tuple[Rule, ...] = ()

    def get_active_rules(self, phase: Phase) -> tuple[Rule, ...]:
        """The rules that a phase judges."""
        return self._by_phase[phase]

    def get_weight(self, phase: Phase) -> Fraction:
        """What they weigh together."""
        return self._weights[phase]

    @cached_property
    def _by_phase(self) -> dict[Phase, tuple[Rule, ...]]:
        return {phase: tuple(rule for rule in self.rules if phase.includes(rule.phase)) for phase in Phase}

    @cached_property
    def passing_results(self) -> dict[str, Result]:
        """What each rule comes to when it passes."""
        return {rule.id: Result(rule, Verdict.PASS) for rule in self.rules}

    @cached_property
    def _weights(self) -> dict[Phase, Fraction]:
        return {phase: sum_weights(rules) for phase, rules in self._by_phase.items()}


class Plan(Value):
    """What a session is going to judge: all rules, and the rules (`source::id`) of each selected item.

    `sentences` are the checks that nobody has made concrete yet, `judges` the files with functions that are checks.
    """

    criteria: tuple[Criteria, ...] = ()
    items: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    sentences: dict[str, str] = Field(default_factory=dict)
    judges: tuple[str, ...] = ()


class Result(NamedTuple):
    """The verdict of one rule, and why; never leaves its process, and there are thousands of them."""

    rule: Rule
    verdict: Verdict
    details: str = ""
    evidence: tuple[Evidence, ...] = ()

    @property
    def is_blocking(self) -> bool:
        return self.verdict is Verdict.FAIL and self.rule.is_blocking


@dataclass(frozen=True)
class Evaluation:
    """The verdicts of one set of criteria in one phase, and the score that follows."""

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
        """What did not pass."""
        return tuple(result for result in self.results if result.verdict is not Verdict.PASS)

    @cached_property
    def blockers(self) -> tuple[Result, ...]:
        return tuple(result for result in self.not_passed if result.is_blocking)

    @property
    def passed(self) -> bool:
        return self.score >= self.threshold and not self.blockers

    def select_results(self, verdict: Verdict) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.verdict is verdict)
