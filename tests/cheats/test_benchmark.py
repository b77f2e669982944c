"""The benchmark of cheats and honest work counts what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks/honest_judge.py"


def run_benchmark(*arguments: str) -> list[str]:
    process = subprocess.run(
        [sys.executable, str(BENCHMARK), *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_every_row_has_a_name_of_its_own() -> None:
    names = run_benchmark("--list")
    assert len(set(names)) == len(names) > 200


@pytest.mark.thorough
def test_table_counts_false_greens_of_a_loop_that_believes_an_exit_code() -> None:
    lines = run_benchmark("--only", "edits: the assertions are edited", "--only", "fixes: the product is fixed")
    table = {line[:14].strip(): line[14:].split() for line in lines[-3:]}
    agents, *counts = table["all"]
    assert agents == "2"
    assert counts[-2:] == ["1", "0"]
    assert set(counts[:-2]) == {"0"}
