"""The judge in real clients from npm, with a scripted model: `tox -e clients` installs them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.agents.presets import load_presets
from pytest_loop.integrations.install import main
from tests.agents.model_server import ModelServer, Turn
from tests.agents.test_real_clients import FOLDER, WAYS
from tests.integrations.red_project import GREEN, make_red_project

# The words of a headless call, and the name under which the client offers the tool `evaluate` of our server.
CALLS = {
    "claude": (
        "-p --output-format json --permission-mode bypassPermissions --model claude-sonnet-4-5 --mcp-config .mcp.json",
        "mcp__pytest-loop__evaluate",
    ),
    "gemini": ("-o json --approval-mode yolo -m gemini-2.5-flash", "mcp_pytest-loop_evaluate"),
    "opencode": ("run --format json --auto -m mine/scripted", "pytest-loop_evaluate"),
}
# The client whose files each one reads, if that is another one.
INSTALLED = {"copilot": "vscode"}
COPILOT = "--allow-all-tools --no-ask-user --no-auto-update --model gpt-5"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(params=CALLS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(name: str, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A red project with the integration, and a home in which the client finds its model."""
    monkeypatch.setenv("PATH", f"{FOLDER}{os.pathsep}{os.environ['PATH']}")
    if load_presets()[name].find_program() is None:
        pytest.skip(f"{name} is not installed here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IS_SANDBOX", "1")  # Claude Code asks for that where root skips permissions
    monkeypatch.setenv("MCP_CONNECTION_NONBLOCKING", "false")  # Claude Code does not wait for servers otherwise
    monkeypatch.setenv("MCP_TIMEOUT", "60000")
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    for key, value in WAYS[name].environment.items():
        monkeypatch.setenv(key, value.replace("{url}", server.url))
    for path, data in WAYS[name].settings.items():
        (tmp_path / "home" / path).parent.mkdir(parents=True)
        (tmp_path / "home" / path).write_text(json.dumps(data))
    folder = make_red_project(tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))  # as a shell does; opencode works there
    main([INSTALLED.get(name, name)])
    if name == "copilot":  # a person would trust the folder once
        (tmp_path / "home" / ".copilot").mkdir(parents=True)
        (tmp_path / "home" / ".copilot" / "config.json").write_text(json.dumps({"trustedFolders": [str(folder)]}))
    return folder


def run_client(name: str, folder: Path, *words: str, prompt: str = "mend it") -> str:
    program = load_presets()[name].find_program()
    assert program
    result = subprocess.run(
        [program, *(COPILOT if name == "copilot" else CALLS[name][0]).split(), *words],
        cwd=folder,
        input=prompt,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    return result.stdout + result.stderr


def make_fix(name: str, project: Path) -> Turn:
    way = WAYS[name]
    if name == "claude":  # it edits only what it has read
        return Turn(tools=(("Bash", {"command": "sed -i 's/a - b/a + b/' src/calc.py"}),), asks="Bash")
    return way.make_write(project / "src" / "calc.py", GREEN)


@pytest.mark.parametrize("name", ["claude", "gemini", "copilot"], indirect=True)
def test_client_cannot_stop_before_the_rules_pass(name: str, project: Path, server: ModelServer) -> None:
    tool = "Bash" if name == "claude" else WAYS[name].tool
    server.script = [Turn("Done.", asks=tool), make_fix(name, project), Turn("Now it is done.", asks=tool)]
    output = run_client(name, project)
    bodies = [json.dumps(request.body) for request in server.requests]
    assert any("The rules do not pass: score 0 of 0.9, 0 of 1 rules pass." in body for body in bodies), output
    assert (project / "src" / "calc.py").read_text() == GREEN
    assert "Now it is done." in output


def test_client_asks_the_judge_through_mcp(name: str, project: Path, server: ModelServer) -> None:
    tool = CALLS[name][1]
    evaluate = Turn(tools=((tool, {}),), asks=tool)
    server.script = [evaluate, make_fix(name, project), evaluate, Turn("Done.", asks=tool)]
    output = run_client(name, project)
    bodies = [json.dumps(request.body) for request in server.requests]
    assert any("assert -1 == 5" in body for body in bodies), output
    assert (project / "src" / "calc.py").read_text() == GREEN


@pytest.mark.parametrize(
    ("name", "words", "prompt"),
    [("claude", [], "/pytest-loop"), ("opencode", ["--command", "pytest-loop"], "")],
    indirect=["name"],
)
def test_skill_is_a_slash_command(name: str, words: list[str], prompt: str, project: Path, server: ModelServer) -> None:
    (project / ".claude" / "settings.json").unlink(missing_ok=True)  # no Stop hook
    server.script = [Turn("Done.")]
    output = run_client(name, project, *words, prompt=prompt)
    bodies = [json.dumps(request.body) for request in server.requests]
    assert any("If a person calls this skill by its name" in body for body in bodies), output


@pytest.mark.parametrize(
    ("program", "install"),
    [("claude", "plugin install pytest-loop@pytest-loop"), ("codex", "plugin add pytest-loop@pytest-loop")],
)
def test_client_installs_the_plugin(
    program: str, install: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{FOLDER}{os.pathsep}{os.environ['PATH']}")
    for name, folder in (("HOME", "home"), ("CODEX_HOME", "home/codex"), ("CLAUDE_CONFIG_DIR", "home/claude")):
        monkeypatch.setenv(name, str(tmp_path / folder))
        (tmp_path / folder).mkdir()
    for words in (f"plugin marketplace add {ROOT}", install, "plugin list"):
        result = subprocess.run([program, *words.split()], capture_output=True, text=True, check=False, timeout=120)
        assert result.returncode == 0, result.stdout + result.stderr
    assert "pytest-loop@pytest-loop" in result.stdout
    assert "enabled" in result.stdout
