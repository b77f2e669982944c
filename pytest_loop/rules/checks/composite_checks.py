"""Checks that combine other checks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar

from pydantic import ConfigDict

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules.checks.check import Check, Context, Inputs, find_obstacle, run_check
from pytest_loop.rules.checks.content_checks import RequiredTerms


class _CompositeCheck(Check):
    model_config = ConfigDict(strict=False, arbitrary_types_allowed=True)

    proof: ClassVar[Proof] = Proof.EXECUTION

    checks: tuple[Any, ...]

    def depends_on(self, context: Context) -> Inputs:  # noqa: ARG002 - the combined checks have the inputs
        return Inputs()

    def find_obstacle(self, context: Context) -> str:
        """Return the first obstacle of the combined checks."""
        return next(filter(None, (find_obstacle(check, context) for check in self.checks)), "")


class AllOf(_CompositeCheck):
    """Every check passes. A check that cannot be judged does not hide findings of another."""

    def run(self, context: Context) -> Iterable[Finding]:
        findings: list[Finding] = []
        unjudged: NotJudgedError | None = None
        for check in self.checks:
            try:
                findings += run_check(check, context)
            except NotJudgedError as error:
                unjudged = unjudged or error
        if unjudged and not findings:
            raise unjudged
        return findings


class AnyOf(_CompositeCheck):
    """At least one check passes; otherwise the findings of all are reported."""

    def find_obstacle(self, context: Context) -> str:
        """Return the first obstacle if every check has one."""
        obstacles = [find_obstacle(check, context) for check in self.checks]
        return obstacles[0] if all(obstacles) else ""

    def run(self, context: Context) -> Iterable[Finding]:
        findings: list[Finding] = []
        errors: list[CheckError | NotJudgedError] = []
        for check in self.checks:
            try:
                problems = run_check(check, context)
            except (CheckError, NotJudgedError) as error:
                errors.append(error)
                continue
            if not problems:
                return ()
            findings += problems
        if errors:
            raise errors[0]
        return _merge_alternatives(findings) if len(findings) == len(self.checks) else findings


def _merge_alternatives(findings: list[Finding]) -> list[Finding]:
    """Merge findings with the same result in the same place into one; return other findings unchanged."""
    if len({(finding.where, finding.found) for finding in findings}) > 1 or not findings[0].expected:
        return findings
    expected = dict.fromkeys(finding.expected for finding in findings)
    return [findings[0].model_copy(update={"expected": " or ".join(expected)})]


class FirstOf(_CompositeCheck):
    """The first check that can be carried out decides."""

    def run(self, context: Context) -> Iterable[Finding]:
        *others, last = self.checks
        for check in others:
            with suppress(CheckError):
                return run_check(check, context)
        return run_check(last, context)


class Not(_CompositeCheck):
    """The check does not pass."""

    def run(self, context: Context) -> Iterable[Finding]:
        check = self.checks[0]
        if run_check(check, context):
            return
        places = check.list_matches(context) if isinstance(check, RequiredTerms) else []
        yield from places or [Finding(expected="the check not to pass", found="that it passed")]
