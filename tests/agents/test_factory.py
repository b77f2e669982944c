"""The agent factory: specs, declared names and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.command_agent import CommandAgent
from pytest_loop.agents.factory import KINDS, AgentFactory, load_declared_agents, make_agent
from pytest_loop.agents.presets import Preset, load_presets
from pytest_loop.agents.protocol import AgentReply, AgentRequest, AgentUnavailableError, Watch
from pytest_loop.agents.python_agent import PythonAgent
from pytest_loop.agents.replay_agent import ReplayAgent
from pytest_loop.core.text.redactor import Redactor

NAMES = ", ".join(sorted(load_presets()))


def test_each_kind_makes_its_agent_with_the_name_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").touch()
    (tmp_path / "agents.py").write_text("def ask(request): ...")
    declared = {"mine": "command:cat", "yours": "python:agents.mine:ask", "theirs": "replay:run.jsonl"}
    for kind, specs in (
        (CommandAgent, ("command:cat {prompt_file}", "mine")),
        (PythonAgent, ("python:agents:ask", "python:json:loads", "yours")),
        (ReplayAgent, ("replay:run.jsonl", "theirs")),
    ):
        for spec in specs:
            agent = make_agent(spec, tmp_path, declared)
            assert isinstance(agent, kind)
            assert agent.name == spec
            agent.close()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt", f"expected {KINDS} or one of {NAMES} for an agent, found 'gpt'"),
        ("", f"expected {KINDS} or one of {NAMES} for an agent, found ''"),
        ("claude", "cannot run 'claude': no such command is installed here (pytest-loop agents lists all)"),
        ("claude:'x", 'expected a model and arguments, found "\'x" (No closing quotation)'),
        ("comand:cat", "for an agent, found 'comand:cat' (did you mean command?)"),
        ("command:", "expected a command after `command:`, found nothing"),
        ("command:no-such-program -x", "cannot run 'no-such-program': no such command is installed here"),
        ("command:./plain", "cannot run './plain': Permission denied (make it executable)"),
        ("python:module", "expected python:module:callable, found 'python:module'"),
        (
            "python:agnets.mine:ask",
            "cannot import agnets.mine: no module named 'agnets' (modules are found from the root",
        ),
        ("python:.mine:ask", "cannot import .mine: no module named ''"),
        ("replay:none.jsonl", "none.jsonl: No such file or directory"),
    ],
)
def test_a_wrong_spec_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, message: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "plain").touch()
    with pytest.raises(AgentUnavailableError) as error:
        make_agent(spec, tmp_path, {})
    assert message in str(error.value)


def test_the_error_lists_declared_names(tmp_path: Path) -> None:
    with pytest.raises(
        AgentUnavailableError, match=r"or one of aider, .*, mine, opencode, pi, qwen, vibe, yours for an agent, "
    ):
        make_agent("hers", tmp_path, {"yours": "command:cat", "mine": "command:cat"})


def test_presets_take_a_model_and_may_be_redeclared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gemini", "goose"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    declared = {"gemini": "gemini:gemini-3-pro", "goose": "command:cat"}
    for spec in ("gemini", "gemini:gemini-2.5-flash --debug"):
        agent = make_agent(spec, tmp_path, declared)
        assert isinstance(agent, ClientAgent)
        assert agent.name == spec
    assert isinstance(make_agent("goose", tmp_path, {}), ClientAgent)
    assert isinstance(make_agent("goose", tmp_path, declared), CommandAgent)


DECLARED = """
[tool.pytest-loop.agents.mine]
program = "sh"
arguments = ["-c", "read word; echo \\"{\\\\\\"answer\\\\\\": \\\\\\"$word $0\\\\\\", \\\\\\"used\\\\\\": 7}\\""]
model = ["{model}"]
tokens = "run"
output.text.at = ["answer"]
output.tokens.at = ["used"]
"""


def test_pyproject_declares_names_for_specs(tmp_path: Path) -> None:
    assert load_declared_agents(tmp_path) == {}
    (tmp_path / "pyproject.toml").write_text('[tool.pytest-loop.agents.mine]\nspec = "command:cat"\n')
    assert load_declared_agents(tmp_path) == {"mine": "command:cat"}
    (tmp_path / "pyproject.toml").write_text("[tool.pytest-loop]\nagents = 5\n")
    assert load_declared_agents(tmp_path) == {}


def test_client_declared_in_pyproject_is_called_as_its_table_says(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(DECLARED)
    agent = make_agent("mine:big", tmp_path, load_declared_agents(tmp_path))
    reply = agent.answer(AgentRequest("PRODUCE", "hello", tmp_path), Watch(timeout=20))
    assert (reply.text, reply.usage.tokens) == ("hello big", 7)


def test_client_without_a_model_argument_takes_none(tmp_path: Path) -> None:
    preset = Preset(program="sh", format="claude")
    with pytest.raises(AgentUnavailableError, match="sh takes no model from its command line, found 'big'"):
        make_agent("mine:big", tmp_path, {"mine": preset})
    kimi = Preset(program="sh", format="acp", arguments=("-c", "true"))
    assert isinstance(make_agent("kimi", tmp_path, {"kimi": kimi}), ClientAgent)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.pytest-loop.agents]\nmine = 5\n",
            r'\[tool.pytest-loop.agents.mine\]: expected spec = "..." or program = "...", found 5',
        ),
        ("[tool.pytest-loop.agents.mine]\nspec = 5\n", "expected spec = "),
        ("[tool.pytest-loop.agents.mine]\nprogram = 'x'\n", "expected a table `output`, or a format of acp, "),
        ("[tool.pytest-loop.agents.mine]\nprogram = 'x'\noutput.text.at = 5\n", "output.text.at: Input should be"),
        ("[tool", "cannot read the agents in "),
    ],
)
def test_a_malformed_declaration_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(AgentUnavailableError, match=message):
        load_declared_agents(tmp_path)


SECRET = "s3cr3t-value"


class Plugin:
    """A plugin that makes one agent: it answers with its prompt."""

    name = "parrot"

    def pytest_loop_make_agent(self, spec: str) -> Plugin | None:
        return self if spec == "parrot" else None

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        watch.on_output(SECRET.encode())
        return AgentReply(text=f"{request.prompt}, {SECRET}")

    def close(self) -> None:
        pass


@pytest.fixture
def factory(tmp_path: Path) -> AgentFactory:
    return AgentFactory(tmp_path, Plugin(), Redactor({"API_TOKEN": SECRET}), tmp_path / "record.jsonl")


def test_the_agents_of_a_plugin_are_redacted_and_recorded(factory: AgentFactory) -> None:
    request = AgentRequest("PRODUCE", SECRET, factory.root)
    for agent in (factory.make("parrot"), factory.make_for_folder("parrot", factory.root / "elsewhere")):
        output: list[bytes] = []
        assert agent.answer(request, Watch(on_output=output.append)).text == "[API_TOKEN], [API_TOKEN]"
        assert b"".join(output) == b"[API_TOKEN]"
    assert SECRET not in (factory.root / "record.jsonl").read_text()
    assert (factory.root / "record.jsonl").read_text().count("[API_TOKEN], [API_TOKEN]") == 2


def test_a_factory_makes_declared_agents_and_checks_without_recording(factory: AgentFactory) -> None:
    (factory.root / "pyproject.toml").write_text('[tool.pytest-loop.agents.mine]\nspec = "command:cat"\n')
    factory.check("mine")
    assert not (factory.root / "record.jsonl").exists()
    assert factory.make("mine").name == "mine"
    with pytest.raises(AgentUnavailableError, match="expected command:WORDS"):
        factory.check("yours")
