"""The history of a run compares its iterations; plateaus stop it if they are switched on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
RULES = """
    rules:
      - {id: a.words.one, description: It says one, severity: warn, check: {contains: one}}
      - {id: a.words.two, description: It says two, severity: warn, check: {contains: two}}
      - {id: a.words.three, description: It says three, severity: warn, check: {contains: three}}
      - {id: a.words.four, description: It says four, check: {contains: four}, weight: 1}
"""
WRITER = """
    DRAFTS = {1: "one", 2: "one two three", 3: "one two"}


    def work(request):
        number = request.iteration + (request.step == "REFINE")
        return {"text": DRAFTS.get(number, "one two"), "usage": {"tokens": 300}}
"""


@pytest.fixture
def project(make_project: Callable[..., Path]) -> Path:
    return make_project(words__rules_yaml=RULES, writer_py=WRITER)


@pytest.fixture
def run_writer(run: Pytest) -> Callable[..., str]:
    def work(*words: str) -> str:
        task = ("--loop-task", "Write four words", "--loop-agent", "python:writer:work", "--loop-yes")
        return run(*task, "--loop-rules", "words.rules.yaml", "--loop-alias", "words", *words).stdout

    return work


def test_history_compares_iterations_as_text_and_as_json(run_writer: Callable[..., str], run: Pytest) -> None:
    run_writer("--loop-max-iterations", "3")
    output = run("--loop-history", "-v").stdout
    *rows, best, trajectory, unobservable = output.splitlines()[-7:]
    assert [line.split()[:6] for line in rows] == [
        ["iteration", "phase", "quality", "change", "verified", "tokens"],
        ["1", "A", "25", "failed", "300", "unknown"],
        ["2", "A", "75", "+50", "failed", "300"],
        ["3", "A", "50", "-25", "failed", "300"],
    ]
    assert best == "best: iteration 2 with 75 of 100, and the last is worse"
    assert trajectory == "trajectory: fluctuating (some iterations raised the score, others did not)"
    assert unobservable == "unobservable: no agent reports usd, so this limit cannot end the run"
    data = json.loads(run("--loop-history", "--loop-json", "-").stdout)
    second = data["iterations"][1]
    assert {name: second[name] for name in ("iteration", "score", "quality_score", "quality_delta", "tokens_used")} == {
        "iteration": 2,
        "score": 0.75,
        "quality_score": 75.0,
        "quality_delta": 50.0,
        "tokens_used": 300,
    }
    assert (second["token_cost_usd"], second["tool_calls"], second["verification_status"]) == (None, None, "failed")
    assert second["reflections"][0].startswith("a.words.four: ")
    analytics = data["run"]["analytics"]
    assert (analytics["best_iteration"], analytics["degradation_detected"], analytics["unobservable"]) == (
        2,
        True,
        ["usd"],
    )


@pytest.mark.parametrize(
    "setting", ["loop_plateau = 0.02", pytest.param("loop_diminishing = 0.05", marks=pytest.mark.thorough)]
)
def test_plateau_stops_a_run_without_success(run_writer: Callable[..., str], project: Path, setting: str) -> None:
    reason = "quality_plateau" if "plateau" in setting else "diminishing_returns"
    (project / "pytest.ini").write_text(f"[pytest]\n{setting}\nloop_same_error = 0\nloop_thrashing = 0\n")
    output = run_writer("--loop-max-iterations", "9")
    assert f" · {reason}: " in output
    assert "continue: pytest-loop resume --run words --max-iterations 13" in output


def test_plateau_must_be_between_0_and_1(run_writer: Callable[..., str], run: Pytest, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_plateau = 2\n")
    output = run("--loop-task", "x", "--loop-agent", "python:writer:work", "--loop-yes")
    assert (output.returncode, output.stderr.strip()) == (
        4,
        "ERROR: loop_plateau: expected a number from 0 to 1, found '2'",
    )
