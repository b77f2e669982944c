"""Every installed client, called by its preset: `tox -e clients` installs them, and takes minutes."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.factory import make_agent
from pytest_loop.agents.presets import load_presets
from pytest_loop.agents.protocol import AgentError, AgentRequest, AgentUnavailableError, RateLimitedError, Watch
from tests.agents.model_server import ModelServer, Turn

EXAMPLE = Path(__file__).parents[2] / "examples" / "fix_until_green"
FOLDER = os.environ.get("PYTEST_LOOP_CLIENTS")
Client = Callable[..., ClientAgent]


@dataclass(frozen=True)
class Way:
    """How a client reaches the model server, and how the model writes a file: with a tool or in its text."""

    words: str
    environment: dict[str, str]
    tool: str = ""
    path: str = ""
    text: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    setup: str = ""
    is_login_seen: bool = True

    def make_write(self, path: Path, text: str = "new\n", before: str = "") -> Turn:
        if not self.tool:
            return Turn(f"{path}\n```\n<<<<<<< SEARCH\n{before}=======\n{text}>>>>>>> REPLACE\n```\n")
        if self.path:
            return Turn(tools=((self.tool, {self.path: str(path), self.text: text, **self.arguments}),), asks=self.tool)
        command = f"printf %s {shlex.quote(text)} > {path}"
        return Turn(tools=((self.tool, {self.text: command, **self.arguments}),), asks=self.tool)


OPENCODE = {
    "provider": {
        "mine": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{url}/v1", "apiKey": "dummy-key"},
            "models": {"scripted": {}},
        }
    }
}
WAYS = {
    "aider": Way("openai/gpt-4o", {"OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": "dummy-key"}, is_login_seen=False),
    "claude": Way(
        "claude-sonnet-4-5",
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "dummy-key",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
        },
        "Write",
        "file_path",
        "content",
    ),
    "copilot": Way(
        "gpt-5",
        {
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy-key",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_OFFLINE": "true",
        },
        "bash",
        text="command",
        arguments={"description": "write it"},
    ),
    "gemini": Way(
        "gemini-2.5-flash",
        {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "dummy-key"},
        "write_file",
        "file_path",
        "content",
        settings={".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}}},
    ),
    "goose": Way(
        "gpt-4o",
        {
            "OPENAI_HOST": "{url}",
            "OPENAI_API_KEY": "dummy-key",
            "GOOSE_PROVIDER": "openai",
            "GOOSE_DISABLE_KEYRING": "1",
        },
        "write",
        "path",
        "content",
        is_login_seen=False,
    ),
    "opencode": Way(
        "mine/scripted",
        {"OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE), "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        "write",
        "filePath",
        "content",
    ),
    "pi": Way(
        "scripted/scripted",
        {"PI_OFFLINE": "1"},
        "write",
        "path",
        "content",
        settings={
            ".pi/agent/models.json": {
                "providers": {
                    "scripted": {
                        "baseUrl": "{url}/v1",
                        "api": "openai-completions",
                        "apiKey": "dummy-key",
                        "models": [{"id": "scripted"}],
                    }
                }
            }
        },
    ),
    "vibe": Way(
        "",
        {"SCRIPTED_KEY": "dummy-key"},
        "write_file",
        "path",
        "content",
        settings={
            ".vibe/config.toml": """
active_model = "scripted"
providers = [{name = "mine", api_base = "{url}/v1", api_key_env_var = "SCRIPTED_KEY", backend = "generic"}]
models = [{name = "scripted", provider = "mine", alias = "scripted", input_price = 1.0, output_price = 2.0}]
"""
        },
    ),
    "kimi": Way(
        "",
        {},
        "Write",
        "path",
        "content",
        settings={
            ".kimi-code/config.toml": """
default_model = "scripted"
telemetry = false
[providers.mine]
type = "openai"
base_url = "{url}/v1"
api_key = "dummy-key"
[models.scripted]
provider = "mine"
model = "scripted"
max_context_size = 200000
"""
        },
    ),
    "grok": Way(
        "scripted",
        {"SCRIPTED_KEY": "dummy-key"},
        "write",
        "file_path",
        "content",
        settings={
            ".grok/config.toml": """
[model.scripted]
model = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
"""
        },
    ),
    "cline": Way(
        "scripted -P openai-compatible",
        {},
        "editor",
        "path",
        "new_text",
        setup="cline auth -p openai-compatible -k dummy-key -m scripted -b {url}/v1",
        is_login_seen=False,
    ),
    "qwen": Way(
        "scripted --auth-type openai",
        {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "dummy-key"},
        "write_file",
        "file_path",
        "content",
        is_login_seen=False,
    ),
}


@pytest.fixture(params=WAYS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PATH", f"{FOLDER}{os.pathsep}{os.environ['PATH']}")
    if load_presets()[request.param].find_program() is None:
        pytest.skip(f"{request.param} is not installed here")
    return str(request.param)


@pytest.fixture
def way(name: str) -> Way:
    return WAYS[name]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def client(
    name: str, way: Way, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for key, value in way.environment.items():
        monkeypatch.setenv(key, value.replace("{url}", server.url))
    for path, data in way.settings.items():
        (tmp_path / "home" / path).parent.mkdir(parents=True)
        text = data if isinstance(data, str) else json.dumps(data)
        (tmp_path / "home" / path).write_text(text.replace("{url}", server.url))
    if way.setup:
        subprocess.run(way.setup.replace("{url}", server.url).split(), check=True, capture_output=True, timeout=120)
    spec = f"{name}:{way.words}".rstrip(":")
    agent = make_agent(spec, tmp_path, {})
    assert isinstance(agent, ClientAgent)
    agent.retry_delays = ()

    def prepare(*script: Turn) -> ClientAgent:
        server.script = list(script)
        return agent

    yield prepare
    agent.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_a_client_edits_the_workspace_and_continues(
    client: Client, way: Way, server: ModelServer, project: Path
) -> None:
    last = Turn("Again.", asks=way.tool)
    agent = client(way.make_write(project / "made.txt"), Turn("Fixed.", asks=way.tool), last)
    first = agent.answer(AgentRequest("PRODUCE", "the very first prompt", project), Watch(timeout=90))
    assert (project / "made.txt").read_text().strip() == "new"
    assert bool(first.usage.tokens) is (agent.preset.tokens is not None)
    server.script = [last]
    count = len(server.requests)
    second = agent.answer(AgentRequest("REFINE", "the critique", project), Watch(timeout=90))
    text = json.dumps([request.body for request in server.requests[count:]])
    assert ("the very first prompt" in text) is (agent.preset.resume is not None)
    assert "the critique" in text
    assert bool(second.usage.tokens) is (agent.preset.tokens is not None)
    assert [first.text, second.text] == ([None, None] if agent.preset.is_report else ["Fixed.", "Again."])


@pytest.mark.parametrize("name", ["aider", "gemini", "goose", "opencode"], indirect=True)
def test_a_run_turns_failing_tests_green(
    name: str, way: Way, client: Client, server: ModelServer, tmp_path: Path
) -> None:
    """The first edit is wrong, the second right; the tests of the project decide."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "ledger"))
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)  # nobody has a name here, as in a build
    path = folder / "ledger.py"
    red = path.read_text()
    wrong = red.replace("return found\n", "return found[:-1]\n")
    green = red
    fixer = runpy.run_path(str(EXAMPLE / "scripted_fixer.py"))
    for old, new in (*fixer["FIRST"], *fixer["SECOND"]):
        green = green.replace(old, new)
    done = (Turn("Done.", asks=way.tool),) if way.tool else ()
    client(way.make_write(path, wrong, red), *done, way.make_write(path, green, wrong), *done)
    words = ["--loop-task", "fix until green", "--loop-agent", f"{name}:{way.words}", "--loop-yes", "-q"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3/4  ✓ 9 of 9 pass (+7)" in result.stdout
    assert path.read_text() == green


def test_a_client_writes_a_document_outside_the_workspace(
    client: Client, way: Way, project: Path, tmp_path: Path
) -> None:
    document = tmp_path / "scratch" / "doc.md"
    document.parent.mkdir()
    agent = client(way.make_write(document), Turn("Written.", asks=way.tool))
    agent.answer(AgentRequest("PRODUCE", f"write {document}", project, document), Watch(timeout=90))
    assert document.read_text().strip() == "new"


def test_a_judge_may_not_edit(client: Client, way: Way, project: Path) -> None:
    agent = client(way.make_write(project / "made.txt"), Turn("Judged."))
    agent.answer(AgentRequest("JUDGE", "is it good?", project), Watch(timeout=90))
    assert not (project / "made.txt").exists()


def test_a_refused_login_is_an_error(client: Client, way: Way, project: Path) -> None:
    with pytest.raises(AgentUnavailableError if way.is_login_seen else AgentError) as error:
        client(Turn(status=401)).answer(AgentRequest("PRODUCE", "fix it", project), Watch(timeout=90))
    assert not isinstance(error.value, RateLimitedError)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("goose", "goose acp --with-builtin developer"),
        ("gemini", "gemini --acp --skip-trust -m gemini-2.5-flash"),
    ],
    indirect=["name"],
)
def test_an_acp_client_answers(
    client: Client, way: Way, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("GOOSE_MODEL", way.words)
    client(way.make_write(project / "made.txt"), Turn("Fixed.", asks=way.tool))
    agent = make_agent(f"acp:{words}", project, {})
    assert agent.answer(AgentRequest("PRODUCE", "fix it", project), Watch(timeout=90)).text == "Fixed."
    assert (project / "made.txt").exists()
    server.script = [way.make_write(project / "judged.txt"), Turn("Judged.")]
    assert agent.answer(AgentRequest("JUDGE", "is it good?", project), Watch(timeout=90)).text == "Judged."
    assert not (project / "judged.txt").exists()
