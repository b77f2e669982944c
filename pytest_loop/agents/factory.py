"""Turn the spec of an agent into the agent: the only place that builds one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_loop.agents import acp_bridge
from pytest_loop.agents.builtin_agent import BUILTIN, SECONDS, BuiltinAgent
from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.command_agent import CommandAgent
from pytest_loop.agents.presets import load_presets
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.python_agent import PythonAgent
from pytest_loop.agents.redacted_agent import RedactedAgent
from pytest_loop.agents.replay_agent import RecordedAgent, ReplayAgent
from pytest_loop.core.text.redactor import Redactor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = "command:WORDS, acp:WORDS, python:module:callable, replay:FILE, builtin, builtin:SECONDS"


@dataclass(frozen=True)
class AgentFactory:
    """Build agents for the project at `root`: each is redacted, and recorded where `record` names a file.

    A plugin's agent (`pytest_loop_make_agent`) comes before one declared in pyproject.toml, a kind or a preset.
    """

    root: Path
    hook: Any
    redact: Redactor
    record: Path | None = None
    _agents: dict[str, Agent] = field(default_factory=dict)

    def check(self, spec: str) -> None:
        """Raise `AgentUnavailableError` if `spec` names no agent that can work here."""
        if spec not in self._agents:
            self._agents[spec] = self._make_redacted_agent(spec, self.root)

    def make(self, spec: str) -> Agent:
        """Return the agent of the project that `spec` names; every call shares one."""
        self.check(spec)
        return self._record(self._agents[spec])

    def make_another(self, spec: str, folder: Path) -> Agent:
        """Return a new agent that works in another folder."""
        return self._record(self._make_redacted_agent(spec, folder))

    def _make_redacted_agent(self, spec: str, folder: Path) -> Agent:
        agent: Agent | None = self.hook.pytest_loop_make_agent(spec=spec)
        return RedactedAgent(agent or make_agent(spec, folder, load_declared_specs(self.root)), self.redact)

    def _record(self, agent: Agent) -> Agent:
        return RecordedAgent(agent, self.record) if self.record else agent


def load_declared_specs(root: Path) -> dict[str, str]:
    """Return the specs that pyproject.toml declares in `[tool.pytest-loop.agents.NAME]`, by their names."""
    path = root / "pyproject.toml"
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise AgentUnavailableError(f"cannot read the agents in {path}: {error}") from None
    tables = data.get("tool", {}).get("pytest-loop", {}).get("agents", {})
    specs: dict[str, str] = {}
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not isinstance(table, dict) or not isinstance(table.get("spec"), str):
            raise AgentUnavailableError(
                f'{path}: expected spec = "..." in [tool.pytest-loop.agents.{name}], found {table!r}'
            )
        specs[name] = table["spec"]
    return specs


def make_agent(spec: str, root: Path, declared: dict[str, str]) -> Agent:
    """Return the agent that `spec` names: a kind with its argument, a preset, or a declared name.

    A preset may have a model and further arguments: `codex:gpt-5 --profile quick`. Raises `AgentUnavailableError` for
    every mistake that shows without a request to the agent.
    """
    kind, _, argument = declared.get(spec, spec).partition(":")
    if make := _MAKERS.get(kind):
        return make(argument, root, spec)
    if preset := load_presets().get(kind):
        return ClientAgent(preset, argument, spec)
    names = ", ".join(sorted({*declared, *load_presets()}))
    raise AgentUnavailableError(f"expected {KINDS} or one of {names} for an agent, found {spec!r}")


def _make_acp(words: str, root: Path, name: str) -> Agent:
    if not words.strip():
        raise AgentUnavailableError("expected a command after `acp:`, found nothing")
    CommandAgent(words, root)  # raises if the command cannot be run
    return ClientAgent(acp_bridge.make_preset(), words, name)


def _make_builtin(seconds: str, _root: Path, name: str) -> Agent:
    if seconds and not (seconds.isdecimal() and int(seconds)):
        raise AgentUnavailableError(f"expected whole seconds after builtin:, found {name!r}")
    return BuiltinAgent(seconds=int(seconds) if seconds else SECONDS)


_MAKERS: dict[str, Callable[[str, Path, str], Agent]] = {
    "command": CommandAgent,
    "acp": _make_acp,
    "python": PythonAgent,
    "replay": ReplayAgent,
    BUILTIN: _make_builtin,
}
