"""What to do with a finished document."""

from __future__ import annotations

import pytest

from pytest_loop.core.model.run_setup import Setup
from pytest_loop.core.model.run_state import Stop
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.show.next_steps import suggest_next_step
from tests.core.scripted_run import ScriptedRun

DONE = Stop(passed=True, reason="threshold_reached")


@pytest.mark.parametrize(
    ("path", "step"),
    [
        (".loop/run/openapi.yaml", 'pytest --loop-task "implement .loop/run/openapi.yaml"'),
        ("docs/guide.md", "link it from the page where its readers begin"),
        ("main.py", 'pytest --loop-task "write tests for main.py"'),
        ("nginx.conf", "try it with the program that reads it"),
        ("Dockerfile", "try it with the program that reads it"),
    ],
)
def test_next_step_depends_on_the_type_of_the_document(path: str, step: str) -> None:
    state = ScriptedRun().state.replace(stop=DONE, artifact=path)
    assert step in suggest_next_step(state)


def test_next_step_names_the_copy() -> None:
    state = ScriptedRun().state.replace(stop=DONE, artifact=".loop/run/openapi.yaml")
    assert suggest_next_step(state, "api/openapi.yaml").endswith('"implement api/openapi.yaml"')


@pytest.mark.parametrize(
    ("stop", "setup"), [(Stop(), Setup(artifact="a.md")), (DONE, Setup(target=Target.WORKSPACE, artifact="a.md"))]
)
def test_other_runs_have_no_next_step(stop: Stop, setup: Setup) -> None:
    assert suggest_next_step(ScriptedRun().state.replace(stop=stop, setup=setup)) == ""
