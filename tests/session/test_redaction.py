"""What tests print of a secret is not in what a session found."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Plan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.redaction import Redactor
from pytest_loop.session.redaction import RedactedSession
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionError, SessionStoppedError

SECRET = "s3cr3t-value"
REDACT = Redactor({"API_TOKEN": SECRET})


@dataclass
class Ready:
    """A session whose judgement was made before."""

    found: SessionResult | SessionError

    def evaluate(self, _order: SessionOrder, *extra: str) -> SessionResult:
        if isinstance(self.found, SessionError):
            raise self.found
        self.found.output += f"{extra}"
        return self.found


def test_nothing_that_was_found_has_a_secret_in_it() -> None:
    finding = Finding(expected=f"not {SECRET}", found=SECRET, where="a.py:1", detail=f"E  {SECRET}")
    failed = Evidence(outcome=Outcome.FAILED, text=f"assert {SECRET}", findings=(finding,), seconds=0.5)
    passed = Evidence(outcome=Outcome.PASSED)
    plan = Plan(items={"x": ("x",)})
    found = SessionResult(plan, {"x": failed, "y": passed}, {"b.py": SECRET}, exit_status=1, output=SECRET)
    judgement = RedactedSession(Ready(found), REDACT).evaluate(SessionOrder(), "-x")
    assert SECRET not in repr(judgement)
    assert judgement.evidence["y"] is passed
    assert judgement.evidence["x"] == Evidence(
        outcome=Outcome.FAILED,
        text="assert [API_TOKEN]",
        findings=(Finding(expected="not [API_TOKEN]", found="[API_TOKEN]", where="a.py:1", detail="E  [API_TOKEN]"),),
        seconds=0.5,
    )
    assert (judgement.plan, judgement.exit_status) == (plan, 1)
    assert (judgement.problems, judgement.output) == ({"b.py": "[API_TOKEN]"}, "[API_TOKEN]('-x',)")


@pytest.mark.parametrize("kind", [SessionError, SessionStoppedError])
def test_a_session_that_could_not_be_carried_out_says_so_without_it(kind: type[SessionError]) -> None:
    with pytest.raises(kind, match=r"^it died: \[API_TOKEN\]$") as caught:
        RedactedSession(Ready(kind(f"it died: {SECRET}")), REDACT).evaluate(SessionOrder())
    assert type(caught.value) is kind
