"""Failed items that run again alone: some fail again, others pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import Evidence, Outcome, Phase, SessionPlan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.isolated_items import confirm_failures, run_items_alone
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionError, SessionStoppedError

ROOT = Path("/shop")
ORDER = SessionOrder(phase=Phase.B)
PASSED, FAILED = Outcome.PASSED, Outcome.FAILED


@dataclass
class PreparedSession:
    """A session with a prepared result or error, which records its orders."""

    answer: dict[str, Outcome] | SessionError
    problems: dict[str, str] = field(default_factory=dict)
    orders: list[SessionOrder] = field(default_factory=list)

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        self.orders.append(order)
        if isinstance(self.answer, SessionError):
            raise self.answer
        evidence = {nodeid: Evidence(outcome=outcome) for nodeid, outcome in self.answer.items()}
        return SessionResult(SessionPlan(), evidence, self.problems)


def test_only_the_named_items_run_and_only_their_files_are_collected() -> None:
    session = PreparedSession({"a.py::x": FAILED, "b/c.py::y": FAILED})
    assert confirm_failures(session, ORDER, ROOT, ["a.py::x", "b/c.py::y"])
    (order,) = session.orders
    assert (order.selected, order.only) == (("a.py::x", "b/c.py::y"), ("/shop/a.py", "/shop/b/c.py"))
    assert order.canary


@pytest.mark.parametrize("answer", [{"a.py::x": PASSED}, {}, SessionError("x")], ids=["passed", "gone", "broken"])
def test_what_does_not_fail_once_more_is_noticed(answer: dict[str, Outcome] | SessionError) -> None:
    assert not confirm_failures(PreparedSession(answer), ORDER, ROOT, ["a.py::x"])


def test_nothing_to_repeat_needs_no_session() -> None:
    session = PreparedSession({})
    assert confirm_failures(session, ORDER, ROOT, [])
    assert session.orders == []


def test_request_to_stop_is_not_taken_for_a_failure() -> None:
    with pytest.raises(SessionStoppedError):
        run_items_alone(PreparedSession(SessionStoppedError("stopped")), ORDER, ROOT, ("a.py::x",))
