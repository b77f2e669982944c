"""Two runs side by side."""

from __future__ import annotations

import pytest

from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.show.html.comparison_page import ComparedRun, render_comparison
from tests.show.runs import RunStory, build_hostile_run

DIFF = "--- a/x.unknown\n+++ b/x.unknown\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d"


def compare(first: RunStory, second: RunStory) -> str:
    return render_comparison(ComparedRun(first.state, first.events, DIFF), ComparedRun(second.state, second.events))


@pytest.mark.parametrize(
    ("first", "second", "headline"),
    [
        (
            RunStory("a").evaluate().add(Kind.PHASE_SWITCHED).end("threshold_reached"),
            RunStory("a"),
            "Only green succeeded",
        ),
        (RunStory("a"), RunStory("a").evaluate(["a"]), "Neither succeeded"),
    ],
)
def test_headline_tells_which_run_succeeded(first: RunStory, second: RunStory, headline: str) -> None:
    assert headline in compare(first, second)


def test_rules_that_ended_differently_are_listed() -> None:
    later = RunRule(id="later", description="Later", phase=Phase.B)
    page = compare(RunStory("a", "b", later).evaluate(["a"]), RunStory("a", "c").evaluate())
    assert "4 rules differ at the end; 0 are the same." in page
    assert "not in this run" in page
    assert "not judged" in page
    assert '<ins data-n="9">d</ins>' in page


def test_equal_runs_are_called_alike() -> None:
    story = RunStory("a").evaluate()
    assert "All 1 rules ended alike in both runs." in compare(story, story)


def test_foreign_text_stays_text() -> None:
    story = build_hostile_run("<script>alert(1)</script>")
    assert "<script>alert" not in compare(story, story)
