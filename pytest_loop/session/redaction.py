"""A session whose findings have no secret of the environment in them: tests print what they like."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_loop.core.model.rules import Evidence
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.redaction import Redactor, redact_values
from pytest_loop.session.runner import Judgement, Session, SessionError


@dataclass(frozen=True)
class DiscreetSession:
    """Another session. Nothing was cut yet, so that half a secret cannot be left at the end of a text."""

    session: Session
    redact: Redactor

    def evaluate(self, order: SessionOrder, *extra: str) -> Judgement:
        try:
            found = self.session.evaluate(order, *extra)
        except SessionError as error:
            raise type(error)(self.redact(str(error))) from None
        found.evidence = {nodeid: self._harmless(one) for nodeid, one in found.evidence.items()}
        found.problems = redact_values(found.problems, self.redact)
        found.output = self.redact(found.output)
        return found

    def _harmless(self, one: Evidence) -> Evidence:
        """Most have passed, and have nothing to say."""
        if not one.text and not one.findings:
            return one
        return Evidence.model_validate(redact_values(one.model_dump(), self.redact))
