"""What a composer reads. `UPDATE_GOLDEN=1` writes the golden file anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import StateError
from pytest_loop.workloads.prompting import MOST_CASES, compose_prompt
from tests.core.laboratory import ExperimentStory

GOLDEN = Path(__file__).parent / "golden" / "compose.md"
FILES = {"p.md": "# Prompt\n\nLabels: `Total`\n"}


def told(story: ExperimentStory, letters: str, **fields: Any) -> ExperimentStory:
    """A measurement in which every case that fails says so."""
    story.until(Kind.BASELINE_DONE, Kind.EVALUATION_DONE)
    payload = story.measurement(letters)
    for one in payload["measurement"]["results"]:
        if one["outcome"] == "failed":
            one |= {
                "critiques": [{"message": f"no {one['id']}", "location": "total"}],
                "difference": "-1\n+2",
                **fields,
            }
    story.happens(story.todo[0], **payload)
    return story


def prompt(story: ExperimentStory, **more: Any) -> str:
    return compose_prompt(story.state, FILES, more.pop("docs", {}), "5f3a9c01", **more)


def test_a_composer_reads_the_files_the_cases_and_what_was_believed() -> None:
    story = ExperimentStory(5, on_regression="different", hidden="e", guards="b")
    told(told(story, "F.FFF"), ".FFEF")
    story.until(Kind.CRITIQUE_DONE).happens(Kind.PHASE_ERROR, step="CRITIQUE", reason="expected a mechanism, found ''")
    text = prompt(story, docs={"docs/labels.md": "Amount due is a label."})
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_a_case_that_is_held_out_is_not_even_named() -> None:
    text = prompt(told(ExperimentStory(3, hidden="c"), "FFF"))
    assert "no a" in text
    assert "no c" not in text
    assert "Fail: a, b\n" in text


def test_no_more_is_said_than_anybody_reads() -> None:
    text = prompt(told(ExperimentStory(60), "F" * 60, difference="x" * 5_000))
    assert f"and {60 - MOST_CASES} more cases fail" in text
    assert len(text) < 100_000


def test_the_words_of_a_person_who_skipped_reach_the_composer() -> None:
    story = told(ExperimentStory(), "F..").until(Kind.REFINEMENT_DONE)
    story.happens(Kind.REFINEMENT_DONE, decision={"chosen": None, "feedback": "look at dates"}, option=None)
    assert isinstance(story, ExperimentStory)
    assert "## What is wanted\nlook at dates\n" in prompt(story)


def test_a_prompt_of_ones_own_is_filled_and_an_unknown_word_is_named(tmp_path: Path) -> None:
    own = tmp_path / "composer.md"
    own.write_text("Mend $workload_id.\n\n$artifact_content\n\n$domain_docs\n")
    assert prompt(told(ExperimentStory(), "F.."), own=own).startswith("Mend letters.\n\n<<<data")
    own.write_text("Mend $what.")
    with pytest.raises(StateError, match=r"found \$what"):
        prompt(told(ExperimentStory(), "F.."), own=own)


def test_before_anything_is_measured_there_is_nothing_to_say() -> None:
    assert "0/0 passing (0%)." in prompt(ExperimentStory())
