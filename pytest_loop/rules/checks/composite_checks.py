"""Checks made of checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from pydantic import ConfigDict

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules.checks.check import Check, Context, Inputs, run_check


class _Composed(Check):
    model_config = ConfigDict(strict=False, arbitrary_types_allowed=True)

    # It asks the checks inside.
    is_quiet: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.EXECUTION

    checks: tuple[Any, ...]

    def depends_on(self, context: Context) -> Inputs:  # noqa: ARG002 - each of those inside says it of itself
        return Inputs()


class AllOf(_Composed):
    """Every check passes. What one cannot judge does not hide what another finds."""

    def run(self, context: Context) -> Iterable[Finding]:
        found: list[Finding] = []
        unjudged: NotJudgedError | None = None
        for check in self.checks:
            try:
                found += run_check(check, context)
            except NotJudgedError as reason:
                unjudged = unjudged or reason
        if unjudged and not found:
            raise unjudged
        return found


class AnyOf(_Composed):
    """At least one check passes; otherwise what each one found is said."""

    def run(self, context: Context) -> Iterable[Finding]:
        found: list[Finding] = []
        reasons: list[CheckError | NotJudgedError] = []
        for check in self.checks:
            try:
                wrong = run_check(check, context)
            except (CheckError, NotJudgedError) as reason:
                reasons.append(reason)
                continue
            if not wrong:
                return ()
            found += wrong
        if reasons:
            raise reasons[0]
        return found


class Not(_Composed):
    """The check does not pass."""

    def run(self, context: Context) -> Iterable[Finding]:
        if not run_check(self.checks[0], context):
            yield Finding(expected="the check not to pass", found="that it passed")
