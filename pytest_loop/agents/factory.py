"""From the name of an agent to the agent."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.agents import acp_bridge
from pytest_loop.agents.builtin_agent import NAME as BUILTIN
from pytest_loop.agents.builtin_agent import BuiltinAgent
from pytest_loop.agents.client_agent import PresetAgent
from pytest_loop.agents.command_agent import CommandAgent
from pytest_loop.agents.presets import presets
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.python_agent import PythonAgent
from pytest_loop.agents.replay_agent import ReplayAgent

KINDS = "command:WORDS, acp:WORDS, python:module:callable, replay:FILE, builtin, builtin:SECONDS"


def make(spec: str, root: Path, declared: dict[str, str]) -> Agent:
    """The agent that `spec` names: a kind with its argument, a preset, or a name declared in pyproject.toml.

    A preset may have a model and further arguments: `codex:gpt-5 --profile quick`. What can be seen to be wrong without
    asking it anything is said now.
    """
    kind, _, argument = declared.get(spec, spec).partition(":")
    if kind == "command":
        agent = CommandAgent(argument, spec)
        if problem := agent.missing(root):
            raise AgentUnavailableError(problem)
        return agent
    if kind == "python":
        return _of_the_project(PythonAgent(argument, root, spec))
    if kind == "replay":
        return ReplayAgent(root / argument, spec)
    if kind == BUILTIN:
        return _builtin(argument, spec)
    if kind == "acp":
        return _speaking_acp(argument, root, spec)
    if kind in presets():
        return _client(PresetAgent(presets()[kind], argument, spec))
    names = ", ".join(sorted({*declared, *presets()}))
    raise AgentUnavailableError(f"expected {KINDS} or one of {names} for an agent, found {spec!r}")


def _of_the_project(agent: PythonAgent) -> PythonAgent:
    if problem := agent.missing():
        raise AgentUnavailableError(problem)
    return agent


def _builtin(argument: str, spec: str) -> Agent:
    if not argument:
        return BuiltinAgent()
    if not argument.isdecimal() or not int(argument):
        raise AgentUnavailableError(f"expected whole seconds after builtin:, found {spec!r}")
    return BuiltinAgent(seconds=int(argument))


def _speaking_acp(words: str, root: Path, name: str) -> PresetAgent:
    """An agent by its command, with which the same can be wrong as with any other."""
    if not words.strip():
        raise AgentUnavailableError("expected a command after `acp:`, found nothing")
    if problem := CommandAgent(words).missing(root):
        raise AgentUnavailableError(problem)
    return PresetAgent(acp_bridge.preset(), words, name)


def _client(agent: PresetAgent) -> PresetAgent:
    if problem := agent.missing():
        raise AgentUnavailableError(f"{problem} (--loop-agents lists those that are)")
    return agent
