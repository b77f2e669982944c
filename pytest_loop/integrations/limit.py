"""The command `pytest-loop limit AMOUNT`: change a limit of a run while it works."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

import pytest

from pytest_loop.cli.runs import find_active_run
from pytest_loop.errors import LoopError, StateError
from pytest_loop.integrations.pytest_entry import call_with_settings
from pytest_loop.processes import process_marks
from pytest_loop.settings.settings import Settings
from pytest_loop.store.project_runs import Store

USAGE_ERROR = 4
_AMOUNT = re.compile(r"\$?(?P<number>\d+(?:[.,_]\d+)*)\s*(?P<unit>[a-z$]+)", re.IGNORECASE)
# The limit that a unit belongs to, and how many of its own units one is.
_UNITS = {
    "usd": ("usd", 1),
    "$": ("usd", 1),
    "tokens": ("tokens", 1),
    "iterations": ("max_iterations", 1),
    "seconds": ("max_completed_phase_seconds", 1),
    "minutes": ("max_completed_phase_seconds", 60),
    "hours": ("max_completed_phase_seconds", 3600),
}


def main(words: Sequence[str]) -> int:
    """Change a limit as the words say, and return the exit code."""
    parser = argparse.ArgumentParser(prog="pytest-loop limit", description="change a limit of a run while it works")
    parser.add_argument("amount", help='such as "5 USD", "2000000 tokens", "30 minutes" or "6 iterations"')
    parser.add_argument("--run", metavar="ALIAS", default="", help="the run (default: the only active one)")
    options = parser.parse_args(words)

    def change(_config: pytest.Config, settings: Settings) -> int:
        try:
            print(change_limit(Store(settings.root, settings.start.dir), options.amount, options.run))
        except LoopError as error:
            print(f"ERROR: {error}", file=sys.stderr)
            return USAGE_ERROR
        return 0

    return call_with_settings((), change)


def change_limit(store: Store, amount: str, alias: str) -> str:
    """Ask a run for another limit, and return what to tell; an agent of a run must not extend it."""
    if os.environ.get(process_marks.MARK):
        raise StateError("a run is at work here: only a person changes its limits")
    name, value = parse_limit(amount)
    files = find_active_run(store, alias, "limit")
    state, _ = files.read()
    if state.is_over:
        raise StateError(f"{files.alias} is over ({state.stop.reason}): pytest-loop resume takes higher limits")
    files.request_limits({name: value})
    return f"{files.alias}: {amount} from the next step on"


def parse_limit(text: str) -> tuple[str, float]:
    """Return the name and the value of a limit in words."""
    match = _AMOUNT.fullmatch(text.strip())
    unit = match["unit"].lower() if match else ""
    stem = unit.removesuffix("s") or unit
    found = next((row for word, row in _UNITS.items() if stem and word.startswith(stem)), None)
    if match is None or found is None:
        raise StateError(
            f"expected an amount such as 5 USD, 2000000 tokens, 30 minutes or 6 iterations, found {text!r}"
        )
    name, scale = found
    digits = match["number"].replace("_", "")
    number = float(digits.replace(",", "") if name == "tokens" else digits.replace(",", "."))
    value = number * scale
    if value <= 0 or (name != "usd" and value != int(value)):
        raise StateError(f"expected a whole number above 0, or money, found {text!r}")
    return name, value if name == "usd" else int(value)
