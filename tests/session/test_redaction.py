"""Secrets that tests print are not in the result of a session."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_loop.core.model.rules import Evidence, Finding, Outcome, SessionPlan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.session.redaction import RedactedSession
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionError, SessionStoppedError

SECRET = "s3cr3t-value"
REDACT = Redactor({"API_TOKEN": SECRET})


@dataclass
class FixedSession:
    """A session with a fixed result."""

    result: SessionResult | SessionError

    def evaluate(self, _order: SessionOrder, *extra: str) -> SessionResult:
        if isinstance(self.result, SessionError):
            raise self.result
        self.result.output += f"{extra}"
        return self.result


def test_a_result_contains_no_secret() -> None:
    finding = Finding(expected=f"not {SECRET}", found=SECRET, where="a.py:1", detail=f"E  {SECRET}")
    failed = Evidence(outcome=Outcome.FAILED, text=f"assert {SECRET}", findings=(finding,), seconds=0.5)
    passed = Evidence(outcome=Outcome.PASSED)
    plan = SessionPlan(items={"x": ("x",)})
    result = SessionResult(plan, {"x": failed, "y": passed}, {"b.py": SECRET}, exit_status=1, output=SECRET)
    redacted = RedactedSession(FixedSession(result), REDACT).evaluate(SessionOrder(), "-x")
    assert SECRET not in repr(redacted)
    assert redacted.evidence["y"] is passed
    assert redacted.evidence["x"] == Evidence(
        outcome=Outcome.FAILED,
        text="assert [API_TOKEN]",
        findings=(Finding(expected="not [API_TOKEN]", found="[API_TOKEN]", where="a.py:1", detail="E  [API_TOKEN]"),),
        seconds=0.5,
    )
    assert (redacted.plan, redacted.exit_status) == (plan, 1)
    assert (redacted.problems, redacted.output) == ({"b.py": "[API_TOKEN]"}, "[API_TOKEN]('-x',)")


@pytest.mark.parametrize("kind", [SessionError, SessionStoppedError])
def test_the_error_of_a_session_contains_no_secret(kind: type[SessionError]) -> None:
    with pytest.raises(kind, match=r"^it died: \[API_TOKEN\]$") as caught:
        RedactedSession(FixedSession(kind(f"it died: {SECRET}")), REDACT).evaluate(SessionOrder())
    assert type(caught.value) is kind
