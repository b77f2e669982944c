"""Lessons from earlier runs."""

from __future__ import annotations

from typing import Any

from pytest_loop.core.model.rules import Severity
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
from tests.core.scripted_run import ScriptedRun, make_rule
from tests.event_factory import make_event

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-return 11\n+return 12"


def apply_edit(run: ScriptedRun, diff: Any = DIFF, **payload: Any) -> ScriptedRun:
    return run.complete(Kind.REFINEMENT_DONE, diff=diff, **payload)


def find_run_lessons(run: ScriptedRun) -> list[Lesson]:
    return find_lessons(run.events, "old")


def make_lesson(run: ScriptedRun, about: str = "a.x.y", **fields: Any) -> Lesson:
    """Return a lesson about a failure of a run."""
    assert run.state.evaluation is not None
    signature = next(lesson.signature for lesson in run.state.evaluation.rule_results if lesson.id == about)
    return Lesson(**{"signature": signature, "rule": about, "problem": "no", "diff": DIFF, "run": "old", **fields})


def test_edit_that_removes_a_failure_is_a_lesson() -> None:
    run = apply_edit(ScriptedRun().evaluate("a.x.y", message="11 is not 12")).evaluate()
    (lesson,) = find_run_lessons(run)
    assert (lesson.rule, lesson.problem, lesson.diff) == ("a.x.y", "a.x.y: 11 is not 12", DIFF)
    assert (lesson.name, lesson.others) == ("old, iteration 1", 0)


def test_edit_without_a_confirmed_fix_is_no_lesson() -> None:
    assert find_run_lessons(apply_edit(ScriptedRun().evaluate("a.x.y")).evaluate("a.x.y")) == [], "it still fails"
    assert find_run_lessons(apply_edit(ScriptedRun().evaluate("a.x.y"))) == [], "it was not evaluated"
    assert find_run_lessons(apply_edit(ScriptedRun().evaluate("a.x.y")).evaluate(void=True)) == [], (
        "the judge was tampered with"
    )
    assert find_run_lessons(apply_edit(ScriptedRun().evaluate("a.x.y"), diff="").evaluate()) == [], (
        "the edit is unknown"
    )
    foreign_run = apply_edit(ScriptedRun().evaluate("a.x.y")).evaluate()
    foreign = make_event(foreign_run.state, "refinement_done", {"diff": ["odd"]})
    foreign_run.events = [foreign if event.event == foreign.event else event for event in foreign_run.events]
    assert find_run_lessons(foreign_run) == [], "another tool has edited it"
    assert find_run_lessons(apply_edit(ScriptedRun().evaluate("a.x.y", void=True)).evaluate()) == []


def test_fix_that_is_lost_again_is_no_lesson() -> None:
    rules = (make_rule(), make_rule("a.x.z"))
    run = apply_edit(ScriptedRun(*rules).evaluate("a.x.y", "a.x.z")).evaluate("a.x.z")
    assert [lesson.rule for lesson in find_run_lessons(run)] == ["a.x.y"]
    assert find_run_lessons(apply_edit(run).evaluate("a.x.y", "a.x.z")) == []


def test_lesson_counts_other_rules_fixed_by_the_edit() -> None:
    run = apply_edit(ScriptedRun(make_rule(), make_rule("a.x.z")).evaluate("a.x.y", "a.x.z")).evaluate()
    assert [lesson.others for lesson in find_run_lessons(run)] == [1, 1]
    assert "This edit fixed it, and 1 more with it (old, iteration 1):" in render_lessons(find_run_lessons(run))


def test_evaluations_of_other_tools_are_ignored() -> None:
    run = ScriptedRun().advance_to(Kind.EVALUATION_DONE)
    foreign = make_event(run.state, "evaluation_done", {"score": "good"}, "now")
    assert find_lessons([*run.events, foreign], "old") == []


def test_lesson_is_chosen_by_the_signature_of_a_failure() -> None:
    run = ScriptedRun().evaluate("a.x.y", message="11 is not 12")
    assert choose_lessons(run.state, [make_lesson(run)]) == [make_lesson(run)]
    assert choose_lessons(run.state, [make_lesson(run, signature="another")]) == []
    assert choose_lessons(ScriptedRun().state, [make_lesson(run)]) == []


def test_lessons_are_ordered_by_rule_then_effect_then_age() -> None:
    run = ScriptedRun().evaluate("a.x.y")
    lessons = [
        make_lesson(run, diff="1", rule="a.x.other"),
        make_lesson(run, diff="2", others=3),
        make_lesson(run, diff="3", ts="2026-01-01"),
        make_lesson(run, diff="4", ts="2026-02-01"),
        make_lesson(run, diff="4", ts="2026-02-02"),
    ]
    assert [lesson.diff for lesson in choose_lessons(run.state, lessons)] == ["4", "3", "2"]
    assert [lesson.diff for lesson in choose_lessons(run.state, lessons[:3])] == ["3", "2", "1"]


def test_every_failure_has_a_lesson_before_one_has_two() -> None:
    rules = (make_rule("a.x.1"), make_rule("a.x.2", Severity.WARN), make_rule("a.x.3"))
    run = ScriptedRun(*rules).evaluate("a.x.1", "a.x.2", "a.x.3")
    lessons = [
        make_lesson(run, name, diff=f"{name} {number}") for name in ("a.x.1", "a.x.2", "a.x.3") for number in (1, 2)
    ]
    assert [lesson.diff for lesson in choose_lessons(run.state, lessons)] == ["a.x.1 1", "a.x.2 1", "a.x.3 1"]
    assert [lesson.diff for lesson in choose_lessons(run.state, lessons[:4])] == ["a.x.1 1", "a.x.2 1", "a.x.1 2"]


def test_held_out_rules_have_no_lessons() -> None:
    run = ScriptedRun(make_rule(held_out=True), make_rule("a.x.z")).evaluate("a.x.y", "a.x.z")
    assert choose_lessons(run.state, [make_lesson(run, "a.x.y")]) == []


def test_failures_with_the_same_signature_have_one_lesson() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.x.z")).evaluate("a.x.y", "a.x.z")
    assert run.state.evaluation is not None
    same = tuple(lesson.model_copy(update={"signature": "s"}) for lesson in run.state.evaluation.rule_results)
    evaluation = run.state.evaluation.model_copy(update={"rule_results": same})
    state = run.state.model_copy(update={"evaluation": evaluation})
    assert len(choose_lessons(state, [Lesson("s", "a.x.y", "no", DIFF)])) == 1


def test_lesson_stays_within_its_tokens_and_is_sanitized() -> None:
    long = Lesson("s", "a.x.y", "no", "\n".join(f"+line {number}\x1b[2J" for number in range(1_000)))
    text = render_lessons([long])
    assert f"   | ... and {1_000 - MAX_LINES} more lines" in text
    assert "\x1b" not in text
    assert estimate_tokens(render_lessons([Lesson("s", "a.x.y", "no", "+" + "x" * 100_000)] * 3)) <= 3 * MAX_TOKENS + 3
