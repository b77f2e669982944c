"""Every hook that pytest-loop calls; all are optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pytest_loop.agents.protocol import Agent, AgentRequest
    from pytest_loop.core.events.event import Event
    from pytest_loop.core.model.evaluation import Critique, Evaluation
    from pytest_loop.core.model.rules import Rule, Verdict
    from pytest_loop.core.model.run_state import RunState


def pytest_loop_checks() -> Mapping[str, type[BaseModel]]:  # type: ignore[empty-body]  # a hook
    """Add kinds of checks to rule files.

    Called once for every rule file that is collected; the results of all plugins are joined.

    :returns: the kinds by name, each a pydantic model with a method `run(context)`. If the model has a field of that
        name, it describes the whole check with its modifiers; otherwise it describes the value of the key. `run`
        returns nothing (or True) for a pass, `pytest_loop.Finding` values, a text or False for a failure, and raises
        `pytest_loop.CheckError` if the check cannot be carried out.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_score(rules: Sequence[Rule], verdicts: Mapping[str, Verdict]) -> float | None:
    """Replace the score of an evaluation.

    Called for every set of criteria once all reports have arrived; in a run, called for all its rules together by the
    process that drives it. The first result wins. Rules that block still block.

    :param rules: the rules that were judged.
    :param verdicts: the verdict of each, by its id.
    :returns: a finite number from 0 to 1, or None for the default score.
    """


# The hooks below are called by the process that drives a run. It loads no conftest files, so only plugins can
# implement them: installed ones, and modules named with `-p`.


@pytest.hookspec(firstresult=True)
def pytest_loop_make_agent(spec: str) -> Agent | None:
    """Make the agent that `--loop-agent` or `--loop-judge` names.

    Called once for each name when a run begins; the first result wins.

    :param spec: the value of the option.
    :returns: an agent, or None if this plugin does not know the name.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_make_prompt(request: AgentRequest) -> str | None:
    """Replace the prompt of a request to an agent.

    Called before every request; the first result wins.

    :param request: the request with its default prompt.
    :returns: the new prompt, or None to keep the default.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_critique(evaluation: Evaluation, critique: Critique) -> Critique | None:
    """Extend or replace the critique of an evaluation.

    Called after every evaluation unless the run ends with it; the first result wins.

    :param evaluation: the verdicts.
    :param critique: the default critique.
    :returns: the new critique, or None to keep the default.
    """


@pytest.hookspec(firstresult=True)
def pytest_loop_should_stop(state: RunState) -> str | None:
    """Stop a run.

    Called after every evaluation unless the run ends with it; the first result wins.

    :param state: the current state of the run.
    :returns: the reason to stop, or None to continue. The run ends as stopped; a plugin cannot make it a success.
    """


def pytest_loop_event(event: Event, state: RunState) -> None:
    """Observe an event of a run.

    Called for every event before it is written to disk.

    :param event: the event.
    :param state: the state of the run after the event.
    """
