from __future__ import annotations

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.show.look import Look
from pytest_loop.show.status_text import describe_activity, render_position, render_story
from tests.show.runs import RunStory

LOOK = Look(width=200)


def test_position_has_limits_and_says_what_is_not_known_yet() -> None:
    story = RunStory("a", max_iterations=4)
    assert list(render_position(story.state, "running", LOOK)) == [
        "green · running · iteration 1 of 4 · not judged yet · 0:00"
    ]
    story.evaluate(["a"])
    assert list(render_position(story.state, "running", LOOK)) == [
        "green · running · iteration 1 of 4 · 0 of 1 pass · 0:01"
    ]


def test_activity_names_the_agent_that_works() -> None:
    story = RunStory("a", agents=("one", "two")).evaluate(["a"])
    assert describe_activity(story.state, 75.5) == "now: waiting for the next step or an answer, for 1:15"
    story.add(Kind.CRITIQUE_DONE, issues=[])
    assert describe_activity(story.state, -1) == "now: one edits, for 0:00"


def test_story_of_a_run_is_told_from_its_events() -> None:
    story = RunStory("a", "b").evaluate(["a"]).refine().evaluate(["a"]).end("user_stop")
    *lines, end = render_story(story.events, story.state, LOOK, "1 file changed")
    assert [line.split("/")[0] for line in lines if "pass" in line] == ["1", "2"]
    assert end.startswith("stopped after 0:05 · user_stop: ")


def test_story_without_a_beginning_or_with_gaps_is_not_told() -> None:
    story = RunStory("a").evaluate(["a"]).refine().evaluate(["a"]).end("user_stop")
    assert render_story(story.events[1:], story.state, LOOK, "") == []
    assert render_story([story.events[0], *story.events[3:]], story.state, LOOK, "") == []
