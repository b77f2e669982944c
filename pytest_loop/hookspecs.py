"""Every hook that pytest-loop calls; all are optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pytest_loop.agents.protocol import Agent, AgentRequest
    from pytest_loop.core.events.event import Event
    from pytest_loop.core.model.evaluation import Assessment, Critique
    from pytest_loop.core.model.rules import Rule, Verdict
    from pytest_loop.core.model.run_state import RunState


def pytest_loop_checks() -> Mapping[str, type[BaseModel]]:  # type: ignore[empty-body]
    """Add kinds of checks to rule files.

    Called once for every rule file that is collected; the results of all plugins are joined.

    :returns: a mapping of the name of a kind to a pydantic model with a method `run(context)`. Where the model has a
        field of that name, it describes the whole check with its modifiers; otherwise it describes the value of the
        key. `run` gives nothing (or True) for a pass, `pytest_loop.Finding` values, a text or False for a failure,
        and raises `pytest_loop.CheckError` where the check cannot be carried out.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_score(rules: Sequence[Rule], verdicts: Mapping[str, Verdict]) -> float | None:
    """Score an evaluation in a way of your own.

    Called for every set of criteria when all reports are in; in a run for all its rules together, and by the process
    that drives it. The first result wins. Rules that block still block.

    :param rules: the rules that were judged.
    :param verdicts: the verdict of each, by its id.
    :returns: a finite number from 0 to 1, or None for the usual score.
    """


# The hooks below are called by the process that drives a run. It never loads conftest files, so that they are for
# plugins: installed ones, and modules named with `-p`.


@pytest.hookspec(firstresult=True)
def pytest_loop_make_agent(spec: str) -> Agent | None:
    """Make the agent that `--loop-agent` or `--loop-judge` names.

    Called once for each name when a run begins; the first result wins.

    :param spec: what the person wrote.
    :returns: an agent, or None to leave it to somebody else.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_make_prompt(request: AgentRequest) -> str | None:
    """Write the prompt of a request to an agent.

    Called before every request; the first result wins.

    :param request: the request with the prompt as it would be sent.
    :returns: another prompt, or None to keep it.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_critique(evaluation: Assessment, critique: Critique) -> Critique | None:
    """Add to the critique of an evaluation, or replace it.

    Called after every evaluation that the run goes on from; the first result wins.

    :param evaluation: the verdicts.
    :param critique: the critique made from them.
    :returns: another critique, or None to keep it.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_should_stop(state: RunState) -> str | None:
    """End a run for a reason of your own.

    Called after every evaluation that the run would go on from; the first result wins.

    :param state: the run as it stands.
    :returns: the reason, or None to go on. The run ends as stopped; it cannot be made a success.
    """


def pytest_loop_event(event: Event, state: RunState) -> None:
    """Something has happened in a run.

    Called for every event after it was decided and before it is on disk.

    :param event: what happened.
    :param state: the run as it stands then.
    """
