"""Remove the secrets of the environment from the results of a session."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_loop.core.model.rules import Evidence
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.redactor import Redactor, redact_values
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import Session, SessionError


@dataclass(frozen=True)
class RedactedSession:
    """Redact the results of another session before they are shortened: half a secret would not be recognized."""

    session: Session
    redact: Redactor

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        try:
            result = self.session.evaluate(order, *extra)
        except SessionError as error:
            raise type(error)(self.redact(str(error))) from None
        return redact_result(result, self.redact)


def redact_result(result: SessionResult, redact: Redactor) -> SessionResult:
    """Redact what a session reported, in place, and return it."""
    result.evidence = {nodeid: _redact_evidence(evidence, redact) for nodeid, evidence in result.evidence.items()}
    result.problems = redact_values(result.problems, redact)
    result.output = redact(result.output)
    return result


def _redact_evidence(evidence: Evidence, redact: Redactor) -> Evidence:
    if not evidence.text and not evidence.findings:
        return evidence
    return Evidence.model_validate(redact_values(evidence.model_dump(), redact))
