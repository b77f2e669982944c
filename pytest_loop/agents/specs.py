"""From the name of an agent to the agent."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.agents.command import CommandAgent
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.python import PythonAgent
from pytest_loop.agents.replay import ReplayAgent

KINDS = "command:WORDS, python:module:callable or replay:FILE"


def make(spec: str, root: Path, declared: dict[str, str]) -> Agent:
    """The agent that `spec` names: a kind with its argument, or a name declared in pyproject.toml.

    What can be seen to be wrong without asking it anything is said now.
    """
    kind, _, argument = declared.get(spec, spec).partition(":")
    if kind == "command":
        agent = CommandAgent(argument, spec)
        if problem := agent.missing(root):
            raise AgentUnavailableError(problem)
        return agent
    if kind == "python":
        return PythonAgent(argument, root, spec)
    if kind == "replay":
        return ReplayAgent(root / argument, spec)
    names = f", or one of {', '.join(sorted(declared))}" if declared else ""
    raise AgentUnavailableError(f"expected {KINDS}{names} for an agent, found {spec!r}")
