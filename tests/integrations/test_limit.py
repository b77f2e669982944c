"""`pytest-loop limit`: limits that are changed while a run works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_loop.core.events.run_payloads import LimitsRaised
from pytest_loop.errors import StateError
from pytest_loop.integrations.limit import change_limit, parse_new_limits
from pytest_loop.processes import process_marks
from pytest_loop.store.project_runs import Store
from tests.integrations.red_project import make_red_project


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("5 USD", {"usd": 5.0}),
        ("2.5usd", {"usd": 2.5}),
        ("3 $", {"usd": 3.0}),
        ("2M tokens", {"tokens": 2_000_000}),
        ("1 token", {"tokens": 1}),
        ("30 minutes", {"max_completed_phase_seconds": 1800}),
        ("1 hour", {"max_completed_phase_seconds": 3600}),
        ("90 s", {"max_completed_phase_seconds": 90}),
        ("6 iterations", {"max_iterations": 6}),
        ("5 USD, 20 min", {"usd": 5.0, "max_completed_phase_seconds": 1200}),
    ],
)
def test_limit_is_read_from_words(text: str, limits: dict[str, float]) -> None:
    assert parse_new_limits(text) == limits


@pytest.mark.parametrize("text", ["5", "five USD", "5 EUR", "0 USD", "no USD", "estimates", ""])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(StateError, match="expected"):
        parse_new_limits(text)


AGENT = """
import subprocess, sys
def work(request):
    open("asked", "a").write("x")
    if request.iteration == 1:
        import os
        env = {name: value for name, value in os.environ.items() if name != %r}
        words = [sys.executable, "-m", "pytest_loop", "limit", "2 iterations", "--run", "sums"]
        for environment in (dict(os.environ), env):
            result = subprocess.run(words, env=environment, capture_output=True, text=True)
            print(result.stdout + result.stderr, flush=True)
    open("src/calc.py", "a").write("# x" + chr(10))
"""


@pytest.mark.thorough
@pytest.mark.measured
def test_limit_holds_from_the_next_step_on(tmp_path: Path) -> None:
    """The agent plays the person here; with the mark of a run it is refused."""
    project = make_red_project(tmp_path)
    (project / "worker.py").write_text(AGENT % process_marks.MARK)
    words = [
        "--loop-agent",
        "python:worker:work",
        "--loop-alias",
        "sums",
        "--loop-yes",
        "--loop-max-iterations",
        "9",
        "--loop-fence",
        "off",
        "-vv",
    ]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--loop-task", "fix until green", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a run is at work here: only a person changes its limits" in result.stdout
    assert "sums: 2 iterations from the next step on" in result.stdout
    store = Store(project)
    state, history = store.find_run("sums").read()
    assert (state.iteration, state.max_iterations, state.stop.reason) == (2, 2, "iteration_limit")
    [event] = [event for event in history.events if isinstance(event.payload, LimitsRaised)]
    assert event.payload.dump() == {"max_iterations": 2, "is_exact": True}
    with pytest.raises(StateError, match=r"sums is over \(iteration_limit\): pytest-loop resume takes higher limits"):
        change_limit(store, "5 USD", "sums")
