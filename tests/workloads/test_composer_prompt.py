"""The prompt of a composer. `UPDATE_GOLDEN=1` writes the golden file again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import StateError
from pytest_loop.workloads.composer_prompt import MAX_CASES, render_compose_prompt
from tests.core.scripted_experiment import ScriptedExperiment

GOLDEN = Path(__file__).parent / "golden" / "compose.md"
FILES = {"p.md": "# Prompt\n\nLabels: `Total`\n"}


def add_measurement(run: ScriptedExperiment, letters: str, **fields: Any) -> ScriptedExperiment:
    """A measurement in which every case that fails says so."""
    run.advance_to(Kind.BASELINE_DONE, Kind.EVALUATION_DONE)
    payload = run.build_measurement_payload(letters)
    for result in payload["measurement"]["results"]:
        if result["outcome"] == "failed":
            result |= {
                "critiques": [{"message": f"no {result['id']}", "location": "total"}],
                "difference": "-1\n+2",
                **fields,
            }
    run.record(run.due_kinds[0], **payload)
    return run


def render_prompt(run: ScriptedExperiment, **more: Any) -> str:
    return render_compose_prompt(run.state, FILES, more.pop("docs", {}), "5f3a9c01", **more)


def test_prompt_has_files_cases_and_hypotheses() -> None:
    run = ScriptedExperiment(5, on_regression="different", held_out="e", guards="b")
    add_measurement(add_measurement(run, "F.FFF"), ".FFEF")
    run.advance_to(Kind.CRITIQUE_DONE).record(
        Kind.PHASE_ERROR, step="CRITIQUE", reason="expected a mechanism, found ''"
    )
    text = render_prompt(run, docs={"docs/labels.md": "Amount due is a label."})
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_held_out_cases_are_not_in_the_prompt() -> None:
    text = render_prompt(add_measurement(ScriptedExperiment(3, held_out="c"), "FFF"))
    assert "no a" in text
    assert "no c" not in text
    assert "Fail: a, b\n" in text


def test_number_of_critiques_is_limited() -> None:
    text = render_prompt(add_measurement(ScriptedExperiment(60), "F" * 60, difference="x" * 5_000))
    assert f"and {60 - MAX_CASES} more cases fail" in text
    assert len(text) < 100_000


def test_feedback_of_a_skipped_decision_is_in_the_prompt() -> None:
    run = add_measurement(ScriptedExperiment(), "F..").advance_to(Kind.REFINEMENT_DONE)
    run.record(Kind.REFINEMENT_DONE, decision={"chosen": None, "feedback": "look at dates"}, option=None)
    assert isinstance(run, ScriptedExperiment)
    assert "## What is wanted\nlook at dates\n" in render_prompt(run)


def test_template_of_the_workload_is_filled_and_an_unknown_variable_is_named(tmp_path: Path) -> None:
    template = tmp_path / "composer.md"
    template.write_text("Mend $workload_id.\n\n$artifact_content\n\n$domain_docs\n")
    assert render_prompt(add_measurement(ScriptedExperiment(), "F.."), template=template).startswith(
        "Mend letters.\n\n<<<data"
    )
    template.write_text("Mend $what.")
    with pytest.raises(StateError, match=r"found \$what"):
        render_prompt(add_measurement(ScriptedExperiment(), "F.."), template=template)


def test_prompt_works_without_a_measurement() -> None:
    assert "0/0 passing (0%)." in render_prompt(ScriptedExperiment())
