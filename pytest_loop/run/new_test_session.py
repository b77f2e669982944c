"""Run the tests that an agent has added, in a session of their own that decides nothing."""

from __future__ import annotations

from pytest_loop.core.model.evaluation import NewTests
from pytest_loop.core.model.rules import Outcome, Phase
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.workspace.project_changes import ProjectChanges
from pytest_loop.workspace.sealed_files import SealedFiles

_GOOD = (Outcome.PASSED, Outcome.SKIPPED, Outcome.XFAILED)


def run_new_tests(project: SealedFiles, session: Session) -> NewTests | None:
    """Return the result of new tests, or None if there are none."""
    paths = ProjectChanges(project).list_new_tests()
    if not paths:
        return None
    project.begin_work(is_session=True)
    order = SessionOrder(phase=Phase.B, only=tuple(str(project.root / path) for path in paths))
    try:
        result = session.evaluate(order)
    except SessionError:
        return NewTests(total=len(paths), failing=paths)
    failing = (name for name, evidence in result.evidence.items() if evidence.outcome not in _GOOD)
    return NewTests(total=len(result.evidence) + len(result.problems), failing=(*failing, *result.problems))
