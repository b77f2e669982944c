"""Run the built-in search for suspicious lines and small edits in a process of its own; it edits nothing."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.agents.command_agent import run_agent_command
from pytest_loop.agents.protocol import AgentError, RepairTask, Watch
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes.child import Command
from pytest_loop.repair.order import Order, Result
from pytest_loop.repair.scope import EVERYTHING

ENGINE = "pytest_loop.repair"
# The time limit of a search does not include collection, one run of all tests, and the confirmation of its edits.
_OVERHEAD = 60.0
_AFTER = 1.5
_WITHOUT_US = ("-p", "no:agent_loop")


def search_edits(
    task: RepairTask, root: Path, seconds: float, watch: Watch, name: str, *, localise_only: bool = False
) -> Result:
    """Search for edits that make the failing tests pass; raise `AgentError` if the search has no result."""
    order = Order(
        folder=root,
        words=(*_WITHOUT_US, *task.session_arguments),
        allow=task.editable or EVERYTHING,
        failing=task.failing_tests,
        seconds=seconds,
        after=min(_AFTER, seconds / 4),
        localise_only=localise_only,
    )
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as home:
        folder = Path(home)  # not the project, whose modules could replace installed ones
        order_file, result_file = folder / "order.json", folder / "result.jsonl"
        order_file.write_text(order.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", ENGINE, str(order_file), str(result_file)]
        done = run_agent_command(Command(command, folder, seconds + _OVERHEAD), name, watch)
        lines = result_file.read_text(encoding="utf-8").splitlines() if result_file.exists() else []
    try:
        return Result.model_validate_json(lines[-1] if lines else "")
    except ValidationError:
        output = shorten(done.output[-400:], 300)
        raise AgentError(
            f"the search for an edit ended without a result (exit code {done.exit_code}): {output}"
        ) from None
