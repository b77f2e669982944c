"""Guards: tests that pass before the first edit and must keep passing, whatever the task asks for."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_loop.cli.draft import RunDraft
from pytest_loop.cli.inferred_rules import NO_GUARDS
from pytest_loop.cli.session_arguments import build_suite_arguments
from pytest_loop.core.judging.run_draft import add_guards
from pytest_loop.core.model.rules import TESTS_SOURCE, Phase, SessionPlan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session.runner import SessionError
from pytest_loop.settings.command_line import split_arguments
from pytest_loop.settings.settings import Settings

# Options of pytest that select tests: guards are the tests that they leave out.
_SELECTION_FLAGS = ("-k", "-m")


def add_suite_guards(draft: RunDraft, sessions: SessionFactory) -> RunDraft:
    """Return the draft with all other tests as guards, except those that the task names; unchanged for a document."""
    settings = draft.settings
    if settings.workspace.guards == NO_GUARDS or draft.target is Target.ARTIFACT or _has_whole_suite(draft):
        return draft
    arguments = (*build_suite_arguments(settings), *_cancel_selection(settings))
    try:
        session = sessions.make(arguments, time.time())
        suite = session.evaluate(SessionOrder(phase=Phase.B), "--collect-only", "-q").plan or SessionPlan()
    except SessionError:
        return draft  # the goals can still be evaluated, and their session reports the error
    plan = add_guards(draft.plan, suite, set(_find_named_tests(draft.context.task.text, suite.items)))
    if plan == draft.plan:
        return draft
    paths = _choose_paths(settings, suite, plan)
    return replace(
        draft,
        plan=plan,
        session=sessions.make((*draft.session.arguments, *_cancel_selection(settings), *paths), time.time()),
    )


def _has_whole_suite(draft: RunDraft) -> bool:
    """Return whether every test of the project is a rule already."""
    settings, judging = draft.settings, draft.settings.judging
    is_selected = bool(settings.paths or judging.rules or judging.template or _cancel_selection(settings))
    return not is_selected and bool(draft.context.choose_test_paths((".",)))


def _cancel_selection(settings: Settings) -> tuple[str, ...]:
    """Return the arguments that cancel a selection of tests on the command line."""
    names = [argument.name for argument in split_arguments(settings.arguments)]
    return tuple(word for flag in _SELECTION_FLAGS if flag in names for word in (flag, ""))


def _find_named_tests(task: str, node_ids: Iterable[str]) -> Iterator[str]:
    """Yield the tests that a task names, which it may change."""
    words = set(re.findall(r"[\w./:\[\]-]+", task))
    for node_id in node_ids:
        path, _, name = node_id.partition("::")
        function = name.rpartition("::")[2].partition("[")[0]
        if words & {node_id, path, function}:
            yield node_id


def _choose_paths(settings: Settings, suite: SessionPlan, plan: SessionPlan) -> tuple[str, ...]:
    """Return the paths of the whole suite; if it contains rule files, only the paths of files with guards."""
    if all(criteria.source == TESTS_SOURCE for criteria in suite.criteria):
        return settings.suite_paths
    guards = {rule.id for criteria in plan.criteria for rule in criteria.rules if rule.guard}
    files = dict.fromkeys(node_id.partition("::")[0] for node_id in suite.items if node_id in guards)
    return tuple(str(settings.root / path) for path in files)
