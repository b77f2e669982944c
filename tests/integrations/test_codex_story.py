"""From a fresh clone of a red project: install into the real Codex, one prompt, and it cannot stop before it is green."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.integrations.install import main
from tests.agents.codex_home import find_codex, make_codex_home
from tests.agents.model_server import ModelServer, Turn
from tests.integrations.red_project import GREEN, make_red_project

MEND = Turn(tools=(("exec_command", {"cmd": "sed -i 's/a - b/a + b/' src/calc.py"}),))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with the integration, in a home that trusts it; the clone is used from its own folder."""
    folder = make_red_project(tmp_path)
    home = make_codex_home(tmp_path, server.url, monkeypatch)
    with (home / "config.toml").open("a") as file:
        file.write(f'\n[projects."{folder}"]\ntrust_level = "trusted"\n')
    monkeypatch.chdir(folder)
    main(["codex"])
    return folder


def run_codex(folder: Path, *words: str) -> str:
    command = [find_codex(), "exec", "--json", "--sandbox", "workspace-write", *words, "-"]
    result = subprocess.run(
        list(map(str, command)), cwd=folder, input="mend it", capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def list_prompts(server: ModelServer) -> list[str]:
    return [json.dumps(request.body["input"]) for request in server.requests]


def test_codex_cannot_stop_before_the_rules_pass(project: Path, server: ModelServer) -> None:
    server.script = [Turn("Done."), MEND, Turn("Now it is done.")]
    run_codex(project, "--dangerously-bypass-hook-trust")
    assert (project / "src" / "calc.py").read_text() == GREEN
    prompts = list_prompts(server)
    assert len(prompts) == 3
    assert "The rules do not pass" not in prompts[0]
    assert "The rules do not pass: score 0 of 0.9, 0 of 1 rules pass." in prompts[1]


def test_codex_in_a_subfolder_is_judged_by_the_whole_project(project: Path, server: ModelServer) -> None:
    server.script = [Turn("Done.")]
    with (project / "pytest.ini").open("a") as file:
        file.write("loop_gate_blocks = 1\n")
    run_codex(project / "src", "--dangerously-bypass-hook-trust")
    assert ["The rules do not pass" in prompt for prompt in list_prompts(server)] == [False, True]  # then it lets go


def test_codex_uses_the_judge_through_mcp_alone(project: Path, server: ModelServer) -> None:
    (project / ".codex" / "hooks.json").unlink()
    evaluate = Turn(tools=(("mcp__pytest_loop/evaluate", {}),))
    server.script = [evaluate, MEND, evaluate, Turn("Done.")]
    run_codex(
        project, "-c", "mcp_servers.pytest-loop.required=true", "-c", "mcp_servers.pytest-loop.startup_timeout_sec=60"
    )
    tools = json.dumps(server.requests[0].body["tools"])
    assert "evaluate" in tools, tools
    prompts = list_prompts(server)
    assert "assert -1 == 5" in prompts[1]
    assert "test_calc.py::test_sum" in prompts[3]
    assert (project / "src" / "calc.py").read_text() == GREEN
