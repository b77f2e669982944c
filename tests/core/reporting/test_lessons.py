"""What earlier runs teach, and what they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_loop.core.model.rules import Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.reporting.lessons import (
    MAX_LINES,
    MAX_TOKENS,
    Lesson,
    choose_lessons,
    find_lessons,
    render_lessons,
)
from pytest_loop.core.text.lengths import estimate_tokens
from tests.event_factory import make_event

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-return 11\n+return 12"


def edited(story: Story, diff: Any = DIFF, **payload: Any) -> Story:
    return story.does(Kind.REFINEMENT_DONE, diff=diff, **payload)


def learnt(story: Story) -> list[Lesson]:
    return find_lessons(story.events, "old")


def a_lesson(story: Story, about: str = "a.x.y", **fields: Any) -> Lesson:
    """One about what fails in a story now."""
    assert story.state.evaluation is not None
    said = next(one.signature for one in story.state.evaluation.rule_results if one.id == about)
    return Lesson(**{"signature": said, "rule": about, "problem": "no", "diff": DIFF, "run": "old", **fields})


def test_an_edit_after_which_a_failure_is_gone_is_a_lesson(tell: Tell) -> None:
    story = edited(tell().judged("a.x.y", message="11 is not 12")).judged()
    (one,) = learnt(story)
    assert (one.rule, one.problem, one.diff) == ("a.x.y", "a.x.y: 11 is not 12", DIFF)
    assert (one.name, one.others) == ("old, iteration 1", 0)


def test_what_judges_did_not_confirm_is_no_lesson(tell: Tell) -> None:
    assert learnt(edited(tell().judged("a.x.y")).judged("a.x.y")) == [], "it still fails"
    assert learnt(edited(tell().judged("a.x.y"))) == [], "nobody has judged it"
    assert learnt(edited(tell().judged("a.x.y")).judged(void=True)) == [], "the judge was tampered with"
    assert learnt(edited(tell().judged("a.x.y"), diff="").judged()) == [], "nobody knows what was edited"
    odd = edited(tell().judged("a.x.y")).judged()
    foreign = make_event(odd.state, "refinement_done", {"diff": ["odd"]})
    odd.events = [foreign if event.event == foreign.event else event for event in odd.events]
    assert learnt(odd) == [], "another tool has edited it"
    assert learnt(edited(tell().judged("a.x.y", void=True)).judged()) == []


def test_an_edit_after_which_it_came_back_teaches_nothing(tell: Tell, rule: Make) -> None:
    rules = (rule(), rule("a.x.z"))
    story = edited(tell(*rules).judged("a.x.y", "a.x.z")).judged("a.x.z")
    assert [one.rule for one in learnt(story)] == ["a.x.y"]
    assert learnt(edited(story).judged("a.x.y", "a.x.z")) == []


def test_an_edit_that_mended_several_says_so(tell: Tell, rule: Make) -> None:
    story = edited(tell(rule(), rule("a.x.z")).judged("a.x.y", "a.x.z")).judged()
    assert [one.others for one in learnt(story)] == [1, 1]
    assert "This edit mended it, and 1 more with it (old, iteration 1):" in render_lessons(learnt(story))


def test_evaluations_of_other_tools_are_passed_over(tell: Tell) -> None:
    story = tell().until(Kind.EVALUATION_DONE)
    foreign = make_event(story.state, "evaluation_done", {"score": "good"}, "now")
    assert find_lessons([*story.events, foreign], "old") == []


def test_a_lesson_is_found_by_what_the_failure_says(tell: Tell) -> None:
    now = tell().judged("a.x.y", message="11 is not 12")
    assert choose_lessons(now.state, [a_lesson(now)]) == [a_lesson(now)]
    assert choose_lessons(now.state, [a_lesson(now, signature="another")]) == []
    assert choose_lessons(tell().state, [a_lesson(now)]) == []


def test_the_same_rule_comes_first_then_the_smallest_effect_then_the_newest(tell: Tell) -> None:
    now = tell().judged("a.x.y")
    known = [
        a_lesson(now, diff="1", rule="a.x.other"),
        a_lesson(now, diff="2", others=3),
        a_lesson(now, diff="3", ts="2026-01-01"),
        a_lesson(now, diff="4", ts="2026-02-01"),
        a_lesson(now, diff="4", ts="2026-02-02"),
    ]
    assert [one.diff for one in choose_lessons(now.state, known)] == ["4", "3", "2"]
    assert [one.diff for one in choose_lessons(now.state, known[:3])] == ["3", "2", "1"]


def test_every_failure_has_its_lesson_before_one_has_two(tell: Tell, rule: Make) -> None:
    rules = (rule("a.x.1"), rule("a.x.2", Severity.WARN), rule("a.x.3"))
    now = tell(*rules).judged("a.x.1", "a.x.2", "a.x.3")
    known = [a_lesson(now, name, diff=f"{name} {number}") for name in ("a.x.1", "a.x.2", "a.x.3") for number in (1, 2)]
    assert [one.diff for one in choose_lessons(now.state, known)] == ["a.x.1 1", "a.x.2 1", "a.x.3 1"]
    assert [one.diff for one in choose_lessons(now.state, known[:4])] == ["a.x.1 1", "a.x.2 1", "a.x.1 2"]


def test_what_is_held_out_is_not_spoken_of(tell: Tell, rule: Make) -> None:
    now = tell(rule(holdout=True), rule("a.x.z")).judged("a.x.y", "a.x.z")
    assert choose_lessons(now.state, [a_lesson(now, "a.x.y")]) == []


def test_two_failures_that_say_the_same_have_one_lesson(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.x.z")).judged("a.x.y", "a.x.z")
    assert story.state.evaluation is not None
    same = tuple(one.model_copy(update={"signature": "s"}) for one in story.state.evaluation.rule_results)
    evaluation = story.state.evaluation.model_copy(update={"rule_results": same})
    state = story.state.model_copy(update={"evaluation": evaluation})
    assert len(choose_lessons(state, [Lesson("s", "a.x.y", "no", DIFF)])) == 1


def test_a_lesson_stays_within_its_tokens_and_cannot_control_a_terminal() -> None:
    long = Lesson("s", "a.x.y", "no", "\n".join(f"+line {number}\x1b[2J" for number in range(1_000)))
    text = render_lessons([long])
    assert f"   | ... and {1_000 - MAX_LINES} more lines" in text
    assert "\x1b" not in text
    assert estimate_tokens(render_lessons([Lesson("s", "a.x.y", "no", "+" + "x" * 100_000)] * 3)) <= 3 * MAX_TOKENS + 3
