"""Run an agent's new tests in a separate session: they decide nothing, and the rules must pass without them."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_loop.core.judging.acceptance_tests import check_test_source
from pytest_loop.core.judging.test_files import may_be_collected
from pytest_loop.core.model.evaluation import NewTests
from pytest_loop.core.model.rules import Outcome, Phase
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.workspace.project_changes import ProjectChanges
from pytest_loop.workspace.sealed_files import SealedFiles

_PASSING = (Outcome.PASSED, Outcome.SKIPPED, Outcome.XFAILED)


def list_new_test_files(project: SealedFiles) -> tuple[str, ...]:
    """Return the new files that a test runner of any language may collect because of their names."""
    return tuple(filter(may_be_collected, project.changes.added))


def have_no_assertions(project: SealedFiles, paths: Iterable[str]) -> bool:
    """Return whether there are Python files among new tests, and none of these asserts behaviour."""
    contents = [project.read_current_content(path) or b"" for path in paths if path.endswith(".py")]
    return bool(contents) and all(check_test_source(content.decode("utf-8", "replace")) for content in contents)


def run_new_tests(project: SealedFiles, session: Session) -> NewTests | None:
    """Run an agent's new tests in a separate session; return their results, or None if there are no new tests."""
    paths = ProjectChanges(project).list_new_test_modules()
    if not paths:
        return None
    project.begin_work(is_session=True)
    order = SessionOrder(phase=Phase.B, only=tuple(str(project.root / path) for path in paths))
    try:
        result = session.evaluate(order)
    except SessionError:
        return NewTests(total=len(paths), failing=paths)
    outcomes = {  # without those of a drafted rule file, which the session collects, too
        name: evidence.outcome for name, evidence in result.evidence.items() if name.partition("::")[0] in paths
    }
    failing = (name for name, outcome in outcomes.items() if outcome not in _PASSING)
    return NewTests(total=len(outcomes) + len(result.problems), failing=(*failing, *result.problems))
