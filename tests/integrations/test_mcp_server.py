"""The MCP server, driven by the client of its own SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.integrations.red_project import GREEN, RED, make_red_project

Talk = Callable[[ClientSession], Awaitable[None]]


def hold_conversation(folder: Path, conversation: Talk, *words: str) -> None:
    """Start the server in a folder, and have a conversation with it."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "pytest_loop", "mcp", *words], cwd=str(folder)
    )

    async def run() -> None:
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await conversation(session)

    anyio.run(run)


async def call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    result = await session.call_tool(tool, arguments)
    texts = [content.text for content in result.content if content.type == "text"]
    return [json.loads(text) if text.startswith(("{", "[")) else text for text in texts]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_red_project(tmp_path)


@pytest.mark.measured
def test_server_judges_again_and_tells_what_changed(project: Path) -> None:
    async def conversation(session: ClientSession) -> None:
        [first] = await call(session, "evaluate")
        assert first["passed"] is False
        assert first["since_last_call"] is None
        assert "assert -1 == 5" in first["critique"]
        [rule] = await call(session, "rules")
        assert (rule["id"], rule["passes"]) == ("test_calc.py::test_sum", False)
        (project / "src" / "calc.py").write_text(GREEN)
        [second] = await call(session, "evaluate")
        assert second["passed"] is True
        assert second["since_last_call"] == {"fixed": ["test_calc.py::test_sum"], "broken": []}
        (project / "src" / "calc.py").write_text(RED)
        [third] = await call(session, "evaluate")
        assert third["since_last_call"]["broken"] == ["test_calc.py::test_sum"]

    hold_conversation(project, conversation)


@pytest.mark.measured
def test_an_agent_can_neither_start_nor_confirm_a_run(project: Path) -> None:
    async def conversation(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"evaluate", "rules", "run_start", "run_status", "run_stop", "diff"}
        read_only = [name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint]
        assert sorted(read_only) == ["diff", "evaluate", "rules", "run_start", "run_status"]
        [draft] = await call(session, "run_start", task="fix until green")
        assert "fix until green" in draft
        assert draft.endswith("A person starts this run with: pytest --loop-task 'fix until green'")
        assert "--loop-yes" not in draft
        assert not (project / ".loop").exists()
        [refusal] = await call(session, "run_start", task="--loop-yes")
        assert refusal.startswith("ERROR: ")
        assert "A person starts" not in refusal
        assert not (project / ".loop").exists()
        [status] = await call(session, "run_status")
        assert "there is no run in" in status
        [status] = await call(session, "run_stop", reason="--json=written")
        assert not (project / "written").exists()
        assert "there is no active run to stop" in status
        [diff] = await call(session, "diff")
        assert "there is no run in" in diff

    hold_conversation(project, conversation)


@pytest.mark.thorough
@pytest.mark.measured
def test_a_finished_run_can_be_read(project: Path) -> None:
    (project / "fixer.py").write_text(
        f"def work(request):\n    open('src/calc.py', 'w').write({GREEN!r})\n    return None\n"
    )
    words = [
        "--loop-task",
        "fix until green",
        "--loop-agent",
        "python:fixer:work",
        "--loop-alias",
        "sums",
        "--loop-yes",
    ]
    subprocess.run([sys.executable, "-m", "pytest", *words], cwd=project, check=True, capture_output=True)

    async def conversation(session: ClientSession) -> None:
        [status] = await call(session, "run_status", run="sums")
        assert "verdict SHIP" in status
        [diff] = await call(session, "diff")
        assert "+    return a + b" in diff
        resources = {str(resource.uri) for resource in (await session.list_resources()).resources}
        assert resources == {"loop://report", "loop://history"}
        report = str((await session.read_resource("loop://report")).contents[0])
        assert "<html" in report
        history = getattr((await session.read_resource("loop://history")).contents[0], "text", "")
        assert json.loads(history)[-1]["event"] == "stopped"

    hold_conversation(project, conversation)


@pytest.mark.thorough
@pytest.mark.measured
def test_nothing_to_judge_is_no_verdict(tmp_path: Path) -> None:
    async def conversation(session: ClientSession) -> None:
        [answer] = await call(session, "evaluate")
        assert answer["passed"] is None
        assert answer["reason"].startswith("nothing to judge")
        assert await call(session, "rules") == []

    hold_conversation(tmp_path, conversation)


def test_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError\n")
    result = subprocess.run(
        [sys.executable, "-m", "pytest_loop", "mcp"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 4
    assert result.stderr == "ERROR: the MCP server needs the extra: pip install 'pytest-agent-loop[mcp]'\n"


def test_help_names_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    from pytest_loop.integrations.mcp_server import main

    assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: pytest-loop mcp")
