"""Which settings reopen a run that is over, and how an unfinished run is resumed."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.background import MAX_ATTEMPTS, check_attempts
from pytest_loop.cli.resume import make_reopening_event, resume_run
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.errors import NothingToJudgeError, StateError
from pytest_loop.run.console import Console
from pytest_loop.settings.limit_options import LimitSettings
from pytest_loop.settings.options import CommandSettings, JudgingSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from pytest_loop.store.project_runs import Store
from tests.cli.conftest import HoldRuns, MakeRun


def make_settings(root: Path, **groups: Any) -> Settings:
    return make_default_settings(root, commands=CommandSettings(resume="guide"), **groups)


def test_unfinished_run_is_resumed_where_it_stands(project: Path, make_run: MakeRun) -> None:
    files = make_run()
    console = Console(io.StringIO())
    state, resumed = resume_run(Store(project), make_settings(project), console)
    try:
        assert (resumed.alias, state.iteration, state.is_over) == ("guide", 2, False)
        assert resumed.is_busy
        assert Store(project).pointer.exists()
    finally:
        resumed.release()
    assert files.read()[0].iteration == 2


def test_run_without_rules_has_nothing_to_judge_and_stays_as_it_is(project: Path, make_run: MakeRun) -> None:
    files = make_run(criteria=RunCriteria())
    before = files.snapshot.read_bytes()
    expected = (
        r"the run 'guide' has no rules, .* add them to `criteria.rules` in .*run\.json, or start a run with --loop-task"
    )
    with pytest.raises(NothingToJudgeError, match=expected):
        resume_run(Store(project), make_settings(project), Console(io.StringIO()))
    assert not files.is_busy
    assert files.snapshot.read_bytes() == before


def test_active_run_is_not_resumed(project: Path, make_run: MakeRun, hold_runs: HoldRuns) -> None:
    make_run()
    hold_runs("guide")
    with pytest.raises(StateError, match="watch it with --loop-status=guide, or end it with --loop-stop"):
        resume_run(Store(project), make_settings(project), Console(io.StringIO()))


def test_finished_run_stays_over_and_is_released(project: Path, make_run: MakeRun) -> None:
    make_run(reason="iteration_limit")
    console = Console(io.StringIO())
    state, files = resume_run(Store(project), make_settings(project), console)
    assert state.is_over
    assert not files.is_busy


@pytest.mark.parametrize(
    ("reason", "limits", "flags", "raised"),
    [
        ("iteration_limit", {"max_iterations": 9}, {"--loop-max-iterations"}, {"max_iterations": 9}),
        ("iteration_limit", {"max_iterations": 9}, set(), None),
        ("iteration_limit", {"max_iterations": 4}, {"--loop-max-iterations"}, None),
        ("budget_exceeded", {"budget": 30.0}, {"--loop-budget"}, {"usd": 30.0}),
        ("budget_exceeded", {"budget": 30.0}, set(), None),
        ("budget_exceeded", {"max_seconds": 9}, set(), {"max_completed_phase_seconds": 9}),
        ("must_not", {"max_iterations": 9}, {"--loop-max-iterations"}, None),
        ("blocked", {}, set(), None),
        ("user_stop", {}, set(), {}),
        ("going home", {}, set(), {}),
        ("phase_error", {}, set(), {}),
        (
            "no_auto_retry",
            {},
            set(),
            {"question": "Shall the agent try again, and what should it know about the rule that fails?"},
        ),
    ],
)
def test_only_the_limit_that_stopped_a_run_reopens_it(
    project: Path, make_run: MakeRun, reason: str, limits: dict[str, Any], flags: set[str], raised: Any
) -> None:
    state = make_run(reason=reason).read()[0]
    settings = make_settings(project, limits=LimitSettings(**limits), flags=frozenset(flags))
    event = make_reopening_event(state, settings, can_review=False)
    assert (event.payload.dump() if event else None) == raised


def test_confirmed_rule_reopens_a_run_that_waits_for_it(project: Path, make_run: MakeRun) -> None:
    state = make_run(reason="unconfirmed").read()[0]
    assert make_reopening_event(state, make_settings(project), can_review=False) is None
    settings = make_settings(project, judging=JudgingSettings(confirm=("a.x",)))
    assert make_reopening_event(state, settings, can_review=False) is not None


CRASH = """
import os
from pathlib import Path
from pytest_loop.store.project_runs import Store

files = Store(Path()).get_run("guide")
files.acquire()
files.record_attempt({attempt}, files.read()[0].progress.evaluations)
os.kill(os.getpid(), 9)
"""


def test_attempts_after_crashes_are_counted_and_limited(project: Path, make_run: MakeRun) -> None:
    files = make_run()
    assert check_attempts(files, force=False) == 0
    for attempt in range(1, MAX_ATTEMPTS + 1):
        subprocess.run([sys.executable, "-c", CRASH.format(attempt=attempt)], cwd=project, check=False)
        if attempt < MAX_ATTEMPTS:
            assert check_attempts(files, force=False) == attempt + 1
    with pytest.raises(StateError, match=r"guide was taken up 3 times at .* of iteration 2, and its process died"):
        check_attempts(files, force=False)
    assert check_attempts(files, force=True) == MAX_ATTEMPTS + 1
