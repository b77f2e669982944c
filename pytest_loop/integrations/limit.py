"""The command `pytest-loop limit LIMITS`: change a limit of a run while it works."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence

import pytest

from pytest_loop.cli.command_parser import USAGE_ERROR, Parser
from pytest_loop.cli.runs import find_active_run
from pytest_loop.errors import LoopError, StateError
from pytest_loop.integrations.pytest_entry import call_with_settings
from pytest_loop.processes import process_marks
from pytest_loop.settings.settings import Settings
from pytest_loop.settings.values import parse_limits
from pytest_loop.store.project_runs import Store

# The limits of a run by their names in the settings.
_LIMITS = {
    "budget": "usd",
    "max_tokens": "tokens",
    "max_seconds": "max_completed_phase_seconds",
    "max_iterations": "max_iterations",
}


def main(words: Sequence[str]) -> int:
    """Change the limit that the arguments name, and return the exit code."""
    parser = Parser(prog="pytest-loop limit", description="Change a limit of a run while it works.")
    parser.add_argument("limits", metavar="LIMITS", help='such as "5 USD, 30 min, 2M tokens, 6 iterations"')
    parser.add_argument("--run", metavar="ALIAS", default="", help="the run (default: the only active one)")
    options = parser.parse_args(words)

    def change(_config: pytest.Config, settings: Settings) -> int:
        try:
            print(change_limit(Store(settings.root, settings.start.dir), options.limits, options.run))
        except LoopError as error:
            print(f"ERROR: {error}", file=sys.stderr)
            return USAGE_ERROR
        return 0

    return call_with_settings((), change)


def change_limit(store: Store, text: str, alias: str) -> str:
    """Ask a run to change its limits, and return a confirmation; raises `StateError` if an agent of a run asks."""
    if os.environ.get(process_marks.MARK):
        raise StateError("a run is at work here: only a person changes its limits")
    limits = parse_new_limits(text)
    files = find_active_run(store, alias, "limit")
    state, _ = files.read()
    if state.is_over:
        raise StateError(f"{files.alias} is over ({state.stop.reason}): pytest-loop resume takes higher limits")
    files.requests.ask_for_limits(limits)
    return f"{files.alias}: {text} from the next step on"


def parse_new_limits(text: str) -> dict[str, float]:
    """Return the limits of a run that a text such as `20 min, 6 iterations` sets."""
    try:
        limits = parse_limits(text)
    except ArgumentTypeError as error:
        raise StateError(str(error)) from None
    amounts = {
        _LIMITS[name]: limit for name, limit in limits.items() if name in _LIMITS and isinstance(limit, (int, float))
    }
    if not amounts or len(amounts) < len(limits):
        raise StateError(f"expected limits such as 5 USD, 20 min, 6 iterations, found {text!r}")
    return amounts
