"""The command `pytest-loop mcp`: the judge as an MCP server on standard input and output.

No tool changes the seal, confirms a rule, answers an escalation or raises a limit: an agent must not confirm its own
work.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_loop.cli.command_parser import USAGE_ERROR
from pytest_loop.cli.runs import describe_status, find_run
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.errors import LoopError
from pytest_loop.integrations.client_files import EXTRA_HINT
from pytest_loop.integrations.pytest_entry import call_with_settings
from pytest_loop.integrations.warm_judge import WarmJudge
from pytest_loop.settings.settings import Settings
from pytest_loop.show.html.report_page import render_report
from pytest_loop.store.project_runs import Store

_INSTRUCTIONS = """\
The judge of this project: its tests and rules decide whether work is done. Call `evaluate` before you say that you are
done, fix the causes of what fails, and never edit tests or rules. Only a person starts, confirms or extends runs."""
_USAGE = """\
usage: pytest-loop mcp [PYTEST ARGUMENT ...]

serve the judge to MCP clients on standard input and output"""
_SECONDS = 600


def main(words: Sequence[str]) -> int:
    """Serve until the client disconnects, and return the exit code; `words` are arguments of pytest, such as paths."""
    if "-h" in words or "--help" in words:
        print(_USAGE)
        return 0
    try:
        import mcp  # noqa: F401 - the extra may be missing
    except ImportError:
        print(f"ERROR: {EXTRA_HINT}", file=sys.stderr)
        return USAGE_ERROR
    return call_with_settings(words, _serve)


def _serve(config: pytest.Config, settings: Settings) -> int:
    judge = WarmJudge(config, settings)
    try:
        make_server(judge, Runs(settings)).run("stdio")
    finally:
        judge.close()
    return 0


@dataclass(frozen=True)
class Runs:
    """The runs of the project, as far as an agent may see and change them."""

    settings: Settings

    @property
    def store(self) -> Store:
        return Store(self.settings.root, self.settings.start.dir)

    def make_draft(self, task: str) -> str:
        """Return the draft of a run, and the command with which a person starts it, or else the error."""
        draft = self._call("pytest", f"--loop-task={task}")
        if draft.startswith("ERROR: "):
            return draft
        return f"{draft}\nA person starts this run with: {shlex.join(('pytest', '--loop-task', task))}"

    def describe(self, run: str) -> str:
        return self._call("pytest_loop", "status", *_select_run(run))

    def stop(self, reason: str, run: str) -> str:
        return self._call("pytest_loop", "stop", *_select_run(run), "--", reason or "an agent asked for it")

    def read_diff(self, run: str) -> str:
        """Return the change of a run so far; empty if none is recorded yet."""
        files = find_run(self.store, run)
        return files.artifact.read_text(encoding="utf-8", errors="replace") if files.artifact.is_file() else ""

    def render_report(self) -> str:
        files = find_run(self.store, None)
        state, history = files.read()
        return Redactor(os.environ)(render_report(state, history.events, describe_status(state, files)))

    def read_history(self) -> str:
        _, history = find_run(self.store, None).read()
        return Redactor(os.environ)(json.dumps([event.model_dump(mode="json") for event in history.events]))

    def _call(self, module: str, *words: str) -> str:
        """Run a command without a terminal, so that it cannot confirm; return its output, or else its errors."""
        result = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self.settings.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        return (result.stdout or result.stderr).strip()


def _select_run(run: str) -> tuple[str, ...]:
    return (f"--run={run}",) if run else ()


def make_server(judge: WarmJudge, runs: Runs) -> Any:
    """Return the server with its tools and resources."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer("pytest-loop", instructions=_INSTRUCTIONS, log_level="WARNING")
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    destructive = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

    @server.tool(annotations=read_only)
    def evaluate() -> dict[str, Any]:
        """Judge the project: verdict, score, what fails, what changed since the last call, and a critique."""
        return judge.evaluate()

    @server.tool(annotations=read_only)
    def rules() -> list[dict[str, Any]]:
        """List the rules that judge, and which of them pass."""
        return judge.list_rules()

    @server.tool(annotations=read_only)
    def run_start(task: str) -> str:
        """Draft a run that edits and judges until the rules pass; a person has to start it with the command given."""
        return runs.make_draft(task)

    @server.tool(annotations=read_only)
    def run_status(run: str = "") -> str:
        """Show where a run stands (default: the active, else the latest)."""
        return runs.describe(run)

    @server.tool(annotations=destructive)
    def run_stop(reason: str = "", run: str = "") -> str:
        """End the active run; its files stay as they are."""
        return runs.stop(reason, run)

    @server.tool(annotations=read_only)
    def diff(run: str = "") -> str:
        """Show the change that a run has made so far."""
        return _return_errors(lambda: runs.read_diff(run))

    @server.resource("loop://report", mime_type="text/html")
    def report() -> str:
        """The report of the latest run as a page of HTML."""
        return _return_errors(runs.render_report)

    @server.resource("loop://history", mime_type="application/json")
    def history() -> str:
        """The events of the latest run."""
        return _return_errors(runs.read_history)

    return server


def _return_errors(read: Any) -> str:
    try:
        return str(read())
    except LoopError as error:
        return str(error)
