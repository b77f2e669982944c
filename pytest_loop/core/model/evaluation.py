"""The result of one evaluation, and the critique made from it."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction

from pydantic import Field

from pytest_loop.core.model.rules import Finding, Phase, Severity, Value, Verdict
from pytest_loop.core.text.wording import format_bytes, format_count


class Complaint(Value):
    """A rule that does not pass, with its message."""

    id: str
    severity: Severity = Severity.FAIL
    message: str = ""


class RuleResult(Value):
    """The verdict of one rule in one evaluation; `more` counts the findings that were not stored.

    Failures with the same cause have the same `signature`.
    """

    id: str
    verdict: Verdict
    details: str = ""
    findings: tuple[Finding, ...] = ()
    more: int = 0
    signature: str = ""


class SealFinding(Value):
    """One sign of tampering, of a kind that `core/judging/tampering.py` lists."""

    kind: str
    path: str = ""
    rule: str = ""
    detail: str = ""


class Seal(Value):
    """The sealed files of a run, and the state of the tests before the first edit.

    - `patterns`: patterns of the sealed files.
    - `allow`: patterns of the only files that may be edited; if empty, all unsealed files may.
    - `files`, `start_digest`: hashes of the list of all files, and of their contents.
    - `site`: the hash of the modules that every interpreter loads first.
    - `plugins`: the plugins of the sessions before the first edit; None until there was such a session.
    - `unstable`, `unjudged`: rules that differed between two baselines, or were skipped or expected to fail.
    - `outputs`: files that sessions write, and that are not sealed.
    - `guard_seconds`, `session_seconds`: how long all guards took, and one session.
    - `replaced_tests`: tests whose code is generated, and not found in their file.
    - `interference`: how code under test changed its sessions: a path, which may be empty, and a sentence.
    - `ignored`: source files that git ignores.
    - `test_counts`: by rule, how many tests its command ran.
    - `written`: paths that the baseline wrote although a fence would keep them read-only; None if not observed.
    - `opened`: paths in which agents may install.
    - `named`: files that would be sealed, but that the task wants to be edited.
    - `doctest_sources`: modules of the product whose examples must stay.
    - `module_folders`: folders of the project in which sessions search modules.
    - `outer`: hashes of configuration outside of the project; None if unknown.
    - `left_out`: the hash of the list of files that scans leave out (caches, environments, files that git ignores).
    - `taken_at`: when the baseline was taken, in nanoseconds.
    - `build`: the command that compiles the product.
    """

    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    files: str = ""
    start_digest: str = ""
    site: str = ""
    plugins: tuple[str, ...] | None = ()
    unstable: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    guard_seconds: float = 0.0
    replaced_tests: tuple[str, ...] = ()
    interference: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    test_counts: dict[str, int] = Field(default_factory=dict)
    written: tuple[str, ...] | None = None
    opened: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    doctest_sources: tuple[str, ...] = ()
    module_folders: tuple[str, ...] = ()
    outer: dict[str, str] | None = None
    left_out: str = ""
    session_seconds: float = 0.0
    taken_at: int = 0
    build: str = ""

    def unseal(self, patterns: tuple[str, ...]) -> Seal:
        """Return a seal that lets agents edit files that match `patterns`; add these to `allow` unless it is empty."""
        allow = (*self.allow, *patterns) if self.allow else ()
        return self.model_copy(
            update={"patterns": (*self.patterns, *(f"!{pattern}" for pattern in patterns)), "allow": allow}
        )


class NewTests(Value):
    """The tests that an agent added: how many there are, and those that do not pass."""

    total: int = 0
    failing: tuple[str, ...] = ()


class ShardRun(Value):
    """One shard of an evaluation: its worker, its items, and its time in seconds since the evaluation began."""

    worker: str
    items: int
    started: float
    seconds: float


class ClusterWork(Value):
    """The shards that the workers of a cluster judged in one evaluation, and how much was sent to them."""

    shards: tuple[ShardRun, ...]
    sent_bytes: int = 0

    def __str__(self) -> str:
        workers = format_count(len({shard.worker for shard in self.shards}), "worker")
        return f"{format_count(len(self.shards), 'shard')} on {workers}, {format_bytes(self.sent_bytes)} sent"


class Evaluation(Value):
    """The result of one session: the score, and every rule that does not pass; rules that are not listed passed.

    `artifact_hash` is the beginning of `artifact_sha256`, as other tools of the format write it. `errors` are rules
    whose checks cannot be carried out: they neither pass nor say anything about the artifact. `held_out` is the score
    of the rules that no agent has seen. `not_repeated` counts the rules that keep their verdict without another check.
    `cluster` is None if the rules were judged here.
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
    errors: tuple[Complaint, ...] = ()
    rule_results: tuple[RuleResult, ...] = ()
    assumptions: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    held_out: float | None = None
    not_repeated: int = 0
    void: bool = False
    findings: tuple[SealFinding, ...] = ()
    new_tests: NewTests | None = None
    cluster: ClusterWork | None = None

    @property
    def unmet(self) -> frozenset[str]:
        """The rules that failed or warned, without those that are only tracked."""
        return frozenset(result.id for result in (*self.failed, *self.warnings))

    @property
    def is_clean(self) -> bool:
        """Whether it is not void, and nothing in it blocks."""
        return not self.void and not self.failed and not self.must_not and not self.blocking_errors

    @property
    def blocking_errors(self) -> tuple[Complaint, ...]:
        """The rules that would block if they failed, and cannot be judged."""
        return tuple(error for error in self.errors if error.severity is Severity.FAIL)

    @property
    def is_waiting_for_setup(self) -> bool:
        """Whether rules that cannot be judged are all that keeps the evaluation from passing."""
        is_rest_fixed = not self.failed and (bool(self.blocking_errors) or not self.warnings)
        return bool(self.errors) and not self.void and not self.is_reached and is_rest_fixed

    @property
    def verdict(self) -> str:
        """The verdict in a word: void, pass or fail."""
        return "void" if self.void else "pass" if self.passed else "fail"

    @property
    def is_reached(self) -> bool:
        """Whether it reaches the threshold of its phase, and is clean."""
        return self.passed and self.is_clean


class Novelty(str, Enum):
    """How an issue compares with the iterations before."""

    NEW = "new"
    REPEATED = "repeated"
    REGRESSION = "regression"


class Issue(Value):
    """One thing to fix: a rule that does not pass; `others` counts the rules with the same cause, `also` names some.

    `lines` explain the failure. The rule failed `times` iterations in a row with the same message.
    """

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

    `tokens` is its limit in a prompt. `suspects` are lines of code that probably cause failures.
    """

    issues: tuple[Issue, ...] = ()
    left_out: int = 0
    tokens: int = 2_000
    suspects: tuple[str, ...] = ()
