"""Build agents from their specs; no other module builds agents."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_loop.agents import acp_bridge
from pytest_loop.agents.builtin_agent import DEFAULT_SECONDS, BuiltinAgent
from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.command_agent import CommandAgent
from pytest_loop.agents.presets import Preset, load_presets
from pytest_loop.agents.protocol import Agent, AgentUnavailableError
from pytest_loop.agents.python_agent import PythonAgent
from pytest_loop.agents.redacted_agent import RedactedAgent
from pytest_loop.agents.replay_agent import RecordedAgent, ReplayAgent
from pytest_loop.agents.transcripts import READERS
from pytest_loop.core.model.vocabulary import BUILTIN
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.core.text.toml import tomllib

ACP = "acp"
FORMATS = sorted(READERS)
KINDS = "command:WORDS, acp:WORDS, python:module:callable, replay:FILE, builtin, builtin:SECONDS"


@dataclass(frozen=True)
class AgentFactory:
    """Build agents for the project at `root`, with secrets redacted; record their answers if `record` names a file.

    A plugin's agent (`pytest_loop_make_agent`) comes before one declared in pyproject.toml, a kind or a preset.
    """

    root: Path
    hook: Any
    redact: Redactor
    record: Path | None = None
    _agents: dict[str, Agent] = field(default_factory=dict)

    def check(self, spec: str) -> None:
        """Raise `AgentUnavailableError` if the agent that `spec` names cannot work here."""
        if spec not in self._agents:
            self._agents[spec] = self._make_redacted_agent(spec, self.root)

    def make(self, spec: str) -> Agent:
        """Return the project's agent that `spec` names; calls with the same spec share one agent."""
        self.check(spec)
        return self._record(self._agents[spec])

    def make_for_folder(self, spec: str, folder: Path) -> Agent:
        """Return a new agent that works in a folder other than the project's."""
        return self._record(self._make_redacted_agent(spec, folder))

    def _make_redacted_agent(self, spec: str, folder: Path) -> Agent:
        agent: Agent | None = self.hook.pytest_loop_make_agent(spec=spec)
        return RedactedAgent(agent or make_agent(spec, folder, load_declared_agents(self.root)), self.redact)

    def _record(self, agent: Agent) -> Agent:
        return RecordedAgent(agent, self.record) if self.record else agent


def load_declared_agents(root: Path) -> dict[str, str | Preset]:
    """Return the specs and presets that pyproject.toml declares in `[tool.pytest-loop.agents.NAME]`, by their names."""
    path = root / "pyproject.toml"
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise AgentUnavailableError(f"cannot read the agents in {path}: {error}") from None
    tables = data.get("tool", {}).get("pytest-loop", {}).get("agents", {})
    tables = tables if isinstance(tables, dict) else {}
    return {
        name: _read_declaration(table, f"{path}: [tool.pytest-loop.agents.{name}]") for name, table in tables.items()
    }


def _read_declaration(table: Any, place: str) -> str | Preset:
    if isinstance(table, dict) and isinstance(table.get("spec"), str):
        return str(table["spec"])
    if not isinstance(table, dict) or "program" not in table:
        raise AgentUnavailableError(f'{place}: expected spec = "..." or program = "...", found {table!r}')
    try:
        preset = Preset.model_validate(table)
    except ValidationError as error:
        mistake = error.errors()[0]
        key = ".".join(map(str, mistake["loc"]))
        raise AgentUnavailableError(f"{place}: {key}: {mistake['msg']}") from None
    if preset.output is None and preset.format not in FORMATS:
        raise AgentUnavailableError(f"{place}: expected a table `output`, or a format of {', '.join(FORMATS)}")
    return preset


def make_agent(spec: str, root: Path, declared: Mapping[str, str | Preset]) -> Agent:
    """Return the agent that `spec` names: a kind with its argument, a preset, or a declared name.

    A preset may have a model and further arguments: `codex:gpt-5 --profile quick`. Raise `AgentUnavailableError` for
    every mistake that can be found without a request to the agent.
    """
    meaning = declared.get(spec, spec)
    kind, _, argument = (spec if isinstance(meaning, Preset) else meaning).partition(":")
    presets = {**load_presets(), **{name: preset for name, preset in declared.items() if isinstance(preset, Preset)}}
    if make := _MAKERS.get(kind):
        return make(argument, root, spec)
    if preset := presets.get(kind):
        return _make_client(preset, argument, root, spec)
    names = ", ".join(sorted({*declared, *presets}))
    close = get_close_matches(kind, [*_MAKERS, *declared, *presets], 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise AgentUnavailableError(f"expected {KINDS} or one of {names} for an agent, found {spec!r}{hint}")


def _make_client(preset: Preset, argument: str, root: Path, name: str) -> Agent:
    if preset.format == ACP:
        ClientAgent(preset, argument, name)  # raises if the client is missing or takes no model
        return _make_acp(f"{shlex.join([preset.program, *preset.arguments])} {argument}", root, name)
    return ClientAgent(preset, argument, name)


def _make_acp(words: str, root: Path, name: str) -> Agent:
    if not words.strip():
        raise AgentUnavailableError("expected a command after `acp:`, found nothing")
    CommandAgent(words, root)  # raises if the command cannot be run
    return ClientAgent(acp_bridge.make_preset(), words, name)


def _make_builtin(seconds: str, _root: Path, name: str) -> Agent:
    if seconds and not (seconds.isdecimal() and int(seconds)):
        raise AgentUnavailableError(f"expected whole seconds after builtin:, found {name!r}")
    return BuiltinAgent(int(seconds) if seconds else DEFAULT_SECONDS)


_MAKERS: dict[str, Callable[[str, Path, str], Agent]] = {
    "command": CommandAgent,
    "acp": _make_acp,
    "python": PythonAgent,
    "replay": ReplayAgent,
    BUILTIN: _make_builtin,
}
