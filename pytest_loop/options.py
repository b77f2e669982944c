"""The command line and the ini file: declared once, read into one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

RULE_MARK = (
    "loop_rule(id, severity='fail', weight=None, phase=None, description=None): bind this test to a rule; "
    "its verdict counts in the loop score"
)


@dataclass(frozen=True)
class Options:
    """What the person asked for."""

    phase: str
    baseline: Path | None
    save_baseline: Path | None


def declare(parser: pytest.Parser) -> None:
    """Every `--loop-*` option, each with its ini twin where it has one."""
    group = parser.getgroup("loop", "rules and agent loops (pytest-loop)")
    group.addoption(
        "--loop-phase",
        metavar="A|B",
        help="judge only the rules that are active in this phase (default: all rules, with the threshold of B)",
    )
    parser.addini("loop_phase", "the phase to judge: A or B (default: B, which is all rules)", default="B")
    group.addoption(
        "--loop-baseline",
        metavar="FILE",
        help="compare with an evaluation saved before, and fail only on what became worse",
    )
    parser.addini("loop_baseline", "the same as --loop-baseline", default="")
    group.addoption("--loop-save-baseline", metavar="FILE", help="save this evaluation for --loop-baseline")
    group.addoption("--loop-schema", action="store_true", help="print the JSON Schema of rule files, and exit")


def options(config: pytest.Config) -> Options:
    """The options of a session; a value that cannot be used is a usage error."""
    phase = str(config.getoption("loop_phase") or config.getini("loop_phase")).upper()
    if phase not in ("A", "B"):
        raise pytest.UsageError(f"--loop-phase: expected A or B, found {phase!r}")
    baseline = config.getoption("loop_baseline") or config.getini("loop_baseline")
    saved = config.getoption("loop_save_baseline")
    folder = config.invocation_params.dir
    return Options(phase, folder / baseline if baseline else None, folder / saved if saved else None)
