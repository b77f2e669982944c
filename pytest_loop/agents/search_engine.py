"""Asks the engine for lines that look wrong and for small edits; it runs in a process of its own, and edits nothing."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.agents.protocol import AgentError, RepairTask, Watch
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes import child
from pytest_loop.repair.order import Order, Result
from pytest_loop.repair.scope import EVERYTHING

ENGINE = "pytest_loop.repair"
# Collecting, running all tests once, and confirming what was found take time that no search is told of.
_SLACK = 60.0
_AFTER = 1.5
_WITHOUT_US = ("-p", "no:agent_loop")


def make_search_order(case: RepairTask, root: Path, failing: Sequence[str], seconds: float) -> Order:
    """A search for what makes these tests pass, in sessions like those that judge."""
    return Order(
        folder=root,
        words=(*_WITHOUT_US, *case.session_arguments),
        allow=case.editable or EVERYTHING,
        failing=tuple(failing),
        seconds=seconds,
        after=min(_AFTER, seconds / 4),
    )


def run_search(order: Order, watch: Watch, name: str) -> Result:
    """What the engine has found; raises `AgentError` where it came to no end of its own."""
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as home:
        folder = Path(home)  # where it starts: modules of the project must not take the place of installed ones
        asked, told = folder / "order.json", folder / "result.jsonl"
        asked.write_text(order.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", ENGINE, str(asked), str(told)]
        done = child.run_command(
            child.Command(
                command, folder, order.seconds + _SLACK, should_continue=watch.should_continue, is_thorough=True
            )
        )
        if done.ending is not child.Ending.COMPLETED:
            raise watch.make_error(name, done.ending)
        lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    try:
        return Result.model_validate_json(lines[-1] if lines else "")
    except ValidationError:
        last = shorten(done.output[-400:], 300)
        raise AgentError(
            f"the search for an edit ended without a result (exit code {done.exit_code}): {last}"
        ) from None
