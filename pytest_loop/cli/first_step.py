"""Decide how a run of a project begins: with its rules, with an edit, or with tests that an agent writes."""

from __future__ import annotations

import re

from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.sealing import SealedState
from pytest_loop.cli.task import can_ask
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.task_intent import asks_for_more, classify_task, find_code_names, find_content_words
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.run.console import Console
from pytest_loop.settings.settings import Settings
from pytest_loop.workspace.seal import ACCEPTANCE_FILES, exempt_new_tests
from pytest_loop.workspace.sealed_files import SealedFiles

# Tasks that ask for something that does not exist yet, so that a rule must fail before the first edit.
_NEW_BEHAVIOUR = (Goal.IMPLEMENT_FEATURE, Goal.BUG_FIXED, Goal.DOCUMENTED)
_ADVICE = """\
  let the agent write failing tests first, which you confirm: --loop-tests-first
  add a test that fails until it is done, and start again
  write rules that fail until it is done, and name them with --loop-rules FILE
  let an agent judge it: a rule with `check: {judge: "..."}`, and --loop-judge SPEC"""


class UnmeasuredError(UnclearError):
    """Every rule passes already, and the task asks for something new."""


def choose_first_step(
    baseline: SealedState, task: ParsedTask, project: SealedFiles, settings: Settings, console: Console
) -> RunState:
    """Return the state that a run begins with; at a terminal, offer tests for a task that nothing measures."""
    if settings.start.tests_first:
        return begin_with_tests(baseline.state, project)
    try:
        if baseline.failing_count:
            return begin_with_failures(baseline, task, project)
        return begin_without_failures(baseline.state, task)
    except UnmeasuredError as error:
        if not can_ask(settings, console):
            raise
        console.print_line(str(error).partition(";")[0])
        if not console.confirm("let the agent write failing tests first, for you to confirm?"):
            raise
        return begin_with_tests(baseline.state, project)


def begin_with_tests(state: RunState, project: SealedFiles) -> RunState:
    """Seal everything but new tests, which the agent writes first, and return the state of the run."""
    seal = state.setup.seal or Seal()
    patterns = exempt_new_tests(seal.patterns, project.start.entries)
    files = project.reseal(patterns, ACCEPTANCE_FILES)
    changes = {"patterns": patterns, "allow": ACCEPTANCE_FILES, "files": files}
    return state.replace(work_seal=seal, seal=seal.model_copy(update=changes), edits_first=False)


def begin_with_failures(baseline: SealedState, task: ParsedTask, project: SealedFiles) -> RunState:
    """Return the state of a run that begins with failures; note new code of the task that no failing test names."""
    state, paths = baseline.state, {name.partition("::")[0] for name in baseline.baseline_result.result.failed_items}
    if classify_task(task.task).goal is not Goal.IMPLEMENT_FEATURE or not paths <= project.start.entries.keys():
        return state
    tests = b"\n".join(project.read_start_content(path) or b"" for path in paths)
    names = find_code_names(task.task)
    unmeasured = tuple(name for name in names if not re.search(rb"\b%b\b" % name.encode(), tests))
    return state.replace(draft=state.setup.draft.model_copy(update={"unmeasured": unmeasured}))


def begin_without_failures(state: RunState, task: ParsedTask) -> RunState:
    """Return the state of a run that begins with rules that all pass.

    Leave the state unchanged if the task only asks for a condition that holds already. A refactoring begins with an
    edit, and the rules must keep passing. Raise `UnmeasuredError` for new behaviour, because no rule measures it.
    """
    intent = classify_task(task.task)
    if (task.completion or task.commands) and not find_content_words(task.task):
        return state  # the task asks for nothing but its condition
    if intent.goal is Goal.REGRESSION_GATE:
        return state.replace(edits_first=True)
    if intent.goal in _NEW_BEHAVIOUR or asks_for_more(task.task):
        request = shorten(task.task, 80)
        raise UnmeasuredError(
            f"every rule passes before the first edit, so nothing measures {request!r}; do one of these:\n{_ADVICE}"
        )
    return state
