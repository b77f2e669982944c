"""What a composer reads. `UPDATE_GOLDEN=1` writes the golden file anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import StateError
from pytest_loop.workloads.composer_prompt import MAX_CASES, render_compose_prompt
from tests.core.laboratory import ExperimentStory

GOLDEN = Path(__file__).parent / "golden" / "compose.md"
FILES = {"p.md": "# Prompt\n\nLabels: `Total`\n"}


def add_measurement(story: ExperimentStory, letters: str, **fields: Any) -> ExperimentStory:
    """A measurement in which every case that fails says so."""
    story.until(Kind.BASELINE_DONE, Kind.EVALUATION_DONE)
    payload = story.measurement(letters)
    for result in payload["measurement"]["results"]:
        if result["outcome"] == "failed":
            result |= {
                "critiques": [{"message": f"no {result['id']}", "location": "total"}],
                "difference": "-1\n+2",
                **fields,
            }
    story.happens(story.todo[0], **payload)
    return story


def render_prompt(story: ExperimentStory, **more: Any) -> str:
    return render_compose_prompt(story.state, FILES, more.pop("docs", {}), "5f3a9c01", **more)


def test_the_prompt_has_files_cases_and_hypotheses() -> None:
    story = ExperimentStory(5, on_regression="different", hidden="e", guards="b")
    add_measurement(add_measurement(story, "F.FFF"), ".FFEF")
    story.until(Kind.CRITIQUE_DONE).happens(Kind.PHASE_ERROR, step="CRITIQUE", reason="expected a mechanism, found ''")
    text = render_prompt(story, docs={"docs/labels.md": "Amount due is a label."})
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_hidden_cases_are_not_in_the_prompt() -> None:
    text = render_prompt(add_measurement(ExperimentStory(3, hidden="c"), "FFF"))
    assert "no a" in text
    assert "no c" not in text
    assert "Fail: a, b\n" in text


def test_the_number_of_critiques_is_limited() -> None:
    text = render_prompt(add_measurement(ExperimentStory(60), "F" * 60, difference="x" * 5_000))
    assert f"and {60 - MAX_CASES} more cases fail" in text
    assert len(text) < 100_000


def test_feedback_of_a_skipped_decision_is_in_the_prompt() -> None:
    story = add_measurement(ExperimentStory(), "F..").until(Kind.REFINEMENT_DONE)
    story.happens(Kind.REFINEMENT_DONE, decision={"chosen": None, "feedback": "look at dates"}, option=None)
    assert isinstance(story, ExperimentStory)
    assert "## What is wanted\nlook at dates\n" in render_prompt(story)


def test_a_template_of_the_workload_is_filled_and_an_unknown_variable_is_named(tmp_path: Path) -> None:
    own = tmp_path / "composer.md"
    own.write_text("Mend $workload_id.\n\n$artifact_content\n\n$domain_docs\n")
    assert render_prompt(add_measurement(ExperimentStory(), "F.."), template=own).startswith("Mend letters.\n\n<<<data")
    own.write_text("Mend $what.")
    with pytest.raises(StateError, match=r"found \$what"):
        render_prompt(add_measurement(ExperimentStory(), "F.."), template=own)


def test_the_prompt_works_without_a_measurement() -> None:
    assert "0/0 passing (0%)." in render_prompt(ExperimentStory())
