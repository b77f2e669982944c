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
    """Return a factory of requests; the artifact exists if its text is given."""

    def create(
        step: str = "PRODUCE", prompt: str = "do it", artifact: str | None = None, **fields: Any
    ) -> AgentRequest:
        path = tmp_path / "scratch" / "doc.md"
        path.parent.mkdir(exist_ok=True)
        if artifact is not None:
            path.write_text(artifact)
        return AgentRequest(step, prompt, tmp_path, path, **fields)

    return create


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., CommandAgent]:
    """Return a factory of command agents that run a short Python script with arguments."""

    def create(script: str, words: str = "") -> CommandAgent:
        (tmp_path / "agent.py").write_text(dedent(script))
        return CommandAgent(f"{sys.executable} agent.py {words}", tmp_path, "the agent")

    return create


@pytest.fixture
def function(tmp_path: Path) -> Iterator[Callable[..., PythonAgent]]:
    """Return a factory of Python agents that call a function of a module."""
    agents: list[PythonAgent] = []

    def create(module: str, name: str = "work") -> PythonAgent:
        (tmp_path / "my_agents.py").write_text(dedent(module))
        agents.append(PythonAgent(f"my_agents:{name}", tmp_path))
        return agents[-1]

    yield create
    for agent in agents:
        agent.close()
