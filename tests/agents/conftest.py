from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.agents.command_agent import CommandAgent
from pytest_loop.agents.protocol import AgentRequest
from pytest_loop.agents.python_agent import PythonAgent

Ask = Callable[..., AgentRequest]
# `tox -e clients`: a folder with clients, which are driven beside those on the PATH.
collect_ignore = [] if os.environ.get("PYTEST_LOOP_CLIENTS") else ["test_real_clients.py"]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """A request in a folder of its own; its artifact exists where a text for it is given."""

    def make(step: str = "PRODUCE", prompt: str = "do it", artifact: str | None = None, **more: Any) -> AgentRequest:
        path = tmp_path / "scratch" / "doc.md"
        path.parent.mkdir(exist_ok=True)
        if artifact is not None:
            path.write_text(artifact)
        return AgentRequest(step, prompt, tmp_path, path, **more)

    return make


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., CommandAgent]:
    """A command agent that is a Python script of a few lines, with the words that follow it."""

    def make(script: str, words: str = "") -> CommandAgent:
        (tmp_path / "agent.py").write_text(dedent(script))
        return CommandAgent(f"{sys.executable} agent.py {words}", tmp_path, "the agent")

    return make


@pytest.fixture
def function(tmp_path: Path) -> Iterator[Callable[..., PythonAgent]]:
    """A Python agent: the function `work` of a module in the project."""
    made: list[PythonAgent] = []

    def make(module: str, name: str = "work") -> PythonAgent:
        (tmp_path / "my_agents.py").write_text(dedent(module))
        made.append(PythonAgent(f"my_agents:{name}", tmp_path))
        return made[-1]

    yield make
    for agent in made:
        agent.close()
