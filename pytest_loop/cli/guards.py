"""Guards: tests that pass before the first edit and must keep passing, whatever the task asks for."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_loop.cli.draft import RunDraft
from pytest_loop.cli.session_arguments import build_suite_arguments
from pytest_loop.core.judging.run_draft import add_guards
from pytest_loop.core.model.rules import TESTS_SOURCE, Phase, SessionPlan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session.runner import SessionError
from pytest_loop.settings.command_line import split_arguments
from pytest_loop.settings.settings import Settings

NO_GUARDS = "none"
# Options of pytest that select tests: guards are the tests that they leave out.
_SELECTING = ("-k", "-m")


def guard_draft(draft: RunDraft, sessions: SessionFactory) -> RunDraft:
    """Return the draft with every other test of the project as a guard; a document needs none."""
    settings = draft.settings
    if settings.workspace.guards == NO_GUARDS or draft.target is Target.ARTIFACT or _has_whole_suite(draft):
        return draft
    arguments = (*build_suite_arguments(settings), *_select_all(settings))
    try:
        session = sessions.make(arguments, time.time())
        whole = session.evaluate(SessionOrder(phase=Phase.B), "--collect-only", "-q").plan or SessionPlan()
    except SessionError:
        return draft  # the goals can be judged all the same, and say what is wrong with the suite
    plan = add_guards(draft.plan, whole, set(_find_named_tests(draft.context.task.text, whole.items)))
    if plan == draft.plan:
        return draft
    paths = _choose_paths(settings, whole, plan)
    return replace(
        draft,
        plan=plan,
        session=sessions.make((*draft.session.arguments, *_select_all(settings), *paths), time.time()),
    )


def _has_whole_suite(draft: RunDraft) -> bool:
    """Return whether every test of the project is a rule already."""
    settings, judging = draft.settings, draft.settings.judging
    is_selected = bool(settings.paths or judging.rules or judging.template or _select_all(settings))
    return not is_selected and bool(draft.context.choose_test_paths((".",)))


def _select_all(settings: Settings) -> tuple[str, ...]:
    """Return arguments that take back a selection of tests on the command line."""
    names = [argument.name for argument in split_arguments(settings.arguments)]
    return tuple(word for flag in _SELECTING if flag in names for word in (flag, ""))


def _find_named_tests(task: str, node_ids: Iterable[str]) -> Iterator[str]:
    """Yield the tests that a task names, which it may change."""
    words = set(re.findall(r"[\w./:\[\]-]+", task))
    for node_id in node_ids:
        path, _, name = node_id.partition("::")
        function = name.rpartition("::")[2].partition("[")[0]
        if words & {node_id, path, function}:
            yield node_id


def _choose_paths(settings: Settings, whole: SessionPlan, plan: SessionPlan) -> tuple[str, ...]:
    """Return what a session collects for the guards: the whole suite, or its files if rules are beside them."""
    if all(criteria.source == TESTS_SOURCE for criteria in whole.criteria):
        return settings.suite_paths
    guards = {rule.id for criteria in plan.criteria for rule in criteria.rules if rule.guard}
    files = dict.fromkeys(node_id.partition("::")[0] for node_id in whole.items if node_id in guards)
    return tuple(str(settings.root / path) for path in files)
