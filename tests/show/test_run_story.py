"""A run event by event, its draft and its end, as a user reads them."""

from __future__ import annotations

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.rules import TESTS_SOURCE, Finding, Phase, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_setup import ConfirmedDraft
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.show.draft_text import DraftFacts, render_draft
from pytest_loop.show.ending_text import render_end
from pytest_loop.show.failure_lines import render_unmet_rules
from pytest_loop.show.look import Look
from pytest_loop.show.run_story import RunStory as Storyteller
from pytest_loop.show.run_story import describe_change
from pytest_loop.show.short_diff import paint_diff, render_short_diff
from tests.show.runs import RunStory

DIFF = "--- a/shop.py\n+++ b/shop.py\n@@ -3 +3 @@\n-    return 11\n+    return 12\n"


def make_test_rule(name: str, **fields: object) -> RunRule:
    return RunRule.model_validate({"id": name, "description": name, "key": f"{TESTS_SOURCE}::{name}", **fields})


def tell(story: RunStory, look: Look | None = None, start: RunState | None = None) -> list[str]:
    """Tell all events of a run, each with the state at its time."""
    storyteller, lines = Storyteller(look or Look()), list[str]()
    state = start or story.first_state
    for event in story.events[1:]:
        assert isinstance(event, Event)
        state = RUN_MACHINE.apply(state, event)
        lines += storyteller.tell(event, state)
    return lines


@pytest.fixture
def shop() -> RunStory:
    story = RunStory(
        *(make_test_rule(f"tests/test_shop.py::test_{name}") for name in ("sum", "tax", "name")), max_iterations=5
    )
    story.evaluate(
        {
            "tests/test_shop.py::test_sum": Finding(
                expected="",
                found="AssertionError: assert 11 == 12\n + where 11 = total()",
                where="tests/test_shop.py:3",
            ),
            "tests/test_shop.py::test_name": Finding(expected="", found="TypeError: no", where="shop.py:9"),
        }
    )
    return story.refine(agent="me", seconds=42.4, diff=DIFF, usage={"cost_usd": 0.12}, change={"modified": ["shop.py"]})


def test_failures_are_told_once_and_edits_are_short_diffs(shop: RunStory) -> None:
    shop.evaluate({"tests/test_shop.py::test_name": Finding(expected="", found="TypeError: no", where="shop.py:9")})
    assert tell(shop) == [
        "1/5  ✗ 1 of 3 pass",
        "       tests/test_shop.py:3 test_sum  assert 11 == 12",
        "       shop.py:9 test_name            TypeError: no",
        "     me · 1 file changed in 42 s · 0.12 USD",
        "       shop.py:3  -     return 11",
        "                  +     return 12",
        "2/5  ✗ 2 of 3 pass (+1)",
    ]


def test_narrow_terminal_shows_messages_and_edits_below_long_names(shop: RunStory) -> None:
    assert tell(shop, Look(width=44, wraps=True)) == [
        "1/5  ✗ 1 of 3 pass",
        "       tests/test_shop.py:3 test_sum",
        "         assert 11 == 12",
        "       shop.py:9 test_name  TypeError: no",
        "     me · 1 file changed in 42 s · 0.12 USD",
        "       shop.py:3  -     return 11",
        "                  +     return 12",
    ]
    assert list(render_short_diff(DIFF, Look(width=30, wraps=True))) == [
        "       shop.py:3",
        "         -     return 11",
        "         +     return 12",
    ]


def test_terminal_wraps_the_line_of_an_edit_and_the_question_but_no_command(shop: RunStory) -> None:
    failing = ["tests/test_shop.py::test_sum"]
    shop.evaluate(failing).refine(agent="me", report="64 edits tried in 3.4 s, none fixes test_name").evaluate(failing)
    look = Look(width=44, wraps=True)
    lines = tell(shop, look)
    place = lines.index("     me · 64 edits tried in 3.4 s, none")
    assert lines[place + 1] == "       fixes test_name"
    lines = list(render_end(shop.end("iteration_limit").state, look))
    assert [line for line in lines if len(line) > 44 and not line.startswith(("answer: ", "continue: "))] == []


def test_gains_and_losses_are_counted(shop: RunStory) -> None:
    shop.evaluate({"tests/test_shop.py::test_tax": "no", "tests/test_shop.py::test_name": "no"})
    shop.refine(agent="me", report="3 edits tried in 1 s\nmore").evaluate({"tests/test_shop.py::test_tax": "no"})
    shop.refine(agent="me").evaluate({"tests/test_shop.py::test_tax": "no"}).refine(agent="me").evaluate()
    assert tell(shop)[6:] == [
        "2/5  ✗ 1 of 3 pass (+1, 1 broken)",
        "       tests/test_shop.py test_tax (passed before)  no (and 1 similar)",
        "     me · 3 edits tried in 1 s",
        "3/5  ✗ 2 of 3 pass (+1)",
        "     me · changed nothing in 2.0 s",
        "4/5  ✗ 2 of 3 pass (no gain)",
        "     me · changed nothing in 2.0 s",
        "5/5  ✓ 3 of 3 pass (+1)",
    ]


def test_edit_that_was_put_back_is_not_called_no_change(shop: RunStory) -> None:
    finding = {"kind": "sealed", "path": "tests/test_shop.py", "detail": "was changed, and was put back"}
    shop.evaluate({"tests/test_shop.py::test_tax": "no"}).refine(agent="me", findings=[finding])
    assert "     me · put back: tests/test_shop.py" in tell(shop)


def test_failure_of_an_agent_after_its_edit_is_told(shop: RunStory) -> None:
    shop.evaluate({"tests/test_shop.py::test_tax": "no"}).refine(agent="me", error="me ended with exit code 3")
    assert "       me ended with exit code 3; what it edited is judged all the same" in tell(shop)


def test_quiet_is_one_line_per_iteration_and_very_quiet_nothing(shop: RunStory) -> None:
    shop.evaluate()
    assert tell(shop, Look(-1)) == ["1/5  ✗ 1 of 3 pass", "2/5  ✓ 3 of 3 pass (+2)"]
    assert tell(shop, Look(-2)) == []


def test_verbose_adds_scores_and_very_verbose_the_critique(shop: RunStory) -> None:
    assert "       phase A, score 0.333 of 0.8, hash 6b86b273, artifact.md" in tell(shop, Look(1))
    assert not any("fix: " in line for line in tell(shop, Look(1)))
    assert any("fix: Make it pass" in line for line in tell(shop, Look(2)))


def test_scores_phases_and_warnings_are_shown_where_they_say_more() -> None:
    story = RunStory(
        RunRule(id="a.totals", description="Totals are right", weight=3),
        RunRule(id="b.style", description="It reads well", severity=Severity.WARN, weight=1, phase=Phase.B),
    )
    story.evaluate().add(Kind.PHASE_SWITCHED).evaluate(["b.style"])
    assert tell(story) == [
        "1/99  ✓ 1 of 1 pass in phase A",
        "1/99  ✗ 1 of 2 pass in phase B, 1 warning, score 0.75 of 0.9",
        "       b.style  no",
    ]


def test_many_failures_of_few_causes_share_lines() -> None:
    names = [f"tests/test_many.py::test_it[{number}]" for number in range(50)]
    story = RunStory(*map(make_test_rule, names))
    messages = ["KeyError: 'price'", "TypeError: no", "ValueError: empty"]
    story.evaluate(
        {
            name: Finding(expected="", found=messages[number % 3], where=f"shop.py:{number % 3 + 1}")
            for number, name in enumerate(names)
        }
    )
    lines = tell(story)
    assert len(lines) == 4
    assert lines[1] == "       shop.py:1 test_it[0]  KeyError: 'price' (and 16 similar)"


def test_more_causes_than_fit_are_counted() -> None:
    names = [f"test_many.py::test_{letter}" for letter in "abcdefghijklm"]
    story = RunStory(*map(make_test_rule, names))
    story.evaluate({name: f"KeyError: {name}" for name in names})
    assert tell(story)[-1] == "       … 3 more fail: pytest-loop show"


def test_findings_errors_and_doubts_are_told() -> None:
    story = RunStory("a.x", "a.y")
    sealed = {"kind": "sealed", "path": "test_it.py", "detail": "was changed, and was put back"}
    story.evaluate(
        void=True, findings=[sealed], errors=[{"id": "a.y", "message": "cannot run 'x'"}], assumptions=["a.x"]
    )
    story.add(Kind.PHASE_ERROR, step="REFINE", reason="no answer")
    assert tell(story) == [
        "1/99  ✗ void: 2 of 2 pass, but it does not count, 1 cannot be judged, 1 to confirm",
        "       cannot be judged: a.y: cannot run 'x'",
        "       to confirm: a.x",
        "       sealed: test_it.py: was changed, and was put back",
        "       copies are in `discarded` of the run's folder; --loop-unseal GLOB permits such edits in a new run",
        "     editing failed, and is tried again: no answer",
    ]


def test_agent_that_is_not_done_is_told() -> None:
    story = RunStory("a.x").evaluate(["a.x"]).refine(exit_signal=False).evaluate()
    assert tell(story)[-1] == "       it passes, but the agent says that it is not done"


# -- the draft


def draft(story: RunStory, facts: DraftFacts | None = None, look: Look | None = None) -> list[str]:
    return list(render_draft(story.first_state, facts or DraftFacts(), look or Look()))


def test_draft_of_tests_has_two_lines(shop: RunStory) -> None:
    assert draft(shop, DraftFacts({}, 2, 7)) == [
        "fix until green · 3 tests, 2 failing · agent scripted · at most 5 iterations · undo: pytest-loop restore 0",
        "judge: tests/test_shop.py (sealed, 7 files) · may edit: everything else",
    ]


def test_draft_of_a_document_names_it_and_its_rules() -> None:
    rules = [
        RunRule(id=f"a.r{number}", description=f"Rule {number}", key=f"g.rules.yaml::a.r{number}")
        for number in range(6)
    ]
    story = RunStory(*rules, task="Write a guide", target=Target.ARTIFACT, artifact="guide.md", judge="codex")
    assert draft(
        story,
        DraftFacts(
            {
                "g.rules.yaml::a.r0": "template docs",
                "g.rules.yaml::a.r1": "g.rules.yaml",
                "g.rules.yaml::a.r2": "SHAPE.md:5",
            }
        ),
    ) == [
        "Write a guide · 6 rules · passes at 0.8 in phase A, 0.9 in phase B · agent scripted, judge codex · at most 99 iterations",
        "judge: g.rules.yaml · writes: guide.md",
        "  a.r1  Rule 1",
        "  a.r2  Rule 2  [SHAPE.md:5]",
        "  a.r3  Rule 3",
        "  a.r4  Rule 4",
        "  … and 2 more",
    ]


def test_draft_tells_guards_scopes_limits_and_tests_that_do_not_judge() -> None:
    rules = (
        make_test_rule("a/test_a.py::test"),
        make_test_rule("a/test_b.py::test", guard=True),
        make_test_rule("c.py::t"),
    )
    seal = Seal(allow=("src/*",), unstable=("a/test_a.py::test_x",), unjudged=("a/test_a.py::test_y",), guard_seconds=1)
    confirmed = ConfirmedDraft(unmeasured=("receipt",))
    story = RunStory(*rules, seal=seal, max_completed_phase_seconds=60, max_iterations=1, draft=confirmed)
    assert draft(story)[0] == (
        "fix until green · 2 tests, 1 guard that must keep passing · agent scripted · at most 1 iteration, 60 s of completed steps"
        " · undo: pytest-loop restore 0"
    )
    assert draft(story)[1:] == [
        "judge: a/, c.py · may edit: src/*",
        "unstable: a/test_a.py::test_x (not the same twice, so that it does not block)",
        "note: no failing test names receipt: --loop-tests-first lets the agent write one",
        "not judged: a/test_a.py::test_y (skipped or expected to fail already)",
    ]
    assert draft(story, look=Look(1))[-3:] == [
        "thresholds: A 0.8, B 0.9",
        "limits: 1 iteration, 25 USD, 60 s of completed steps",
        "guards: about 1.0 s",
    ]


# -- the end


def end(story: RunStory, look: Look | None = None, diffstat: str = "1 file changed") -> list[str]:
    return list(render_end(story.state, look or Look(), diffstat))


def test_success_ends_with_change_cost_verdict_and_commands(shop: RunStory) -> None:
    shop.evaluate().add(Kind.PHASE_SWITCHED).end("threshold_reached")
    first, last = end(shop)
    assert first.startswith("done in 0:45 · 1 file changed · 0.12 USD · verdict SHIP: ")
    assert last == "diff: pytest-loop diff · report: pytest-loop report · undo: pytest-loop restore 0"
    assert end(shop, Look(-2)) == [first]
    assert "completed: threshold_reached after iteration 2 of 5, phase B" in end(shop, Look(1))


def test_stop_ends_with_a_question_and_its_commands(shop: RunStory) -> None:
    shop.evaluate({"tests/test_shop.py::test_name": "no"}).end("iteration_limit")
    lines = end(shop)
    assert lines[0] == (
        "stopped after 0:45 · iteration_limit: the maximum number of iterations is reached · 2 of 3 pass"
        " · 1 file changed · 0.12 USD · verdict RESEARCH"
    )
    assert lines[1] == "still failing: tests/test_shop.py::test_name"
    assert lines[2].startswith("progress: some rules were fixed")
    assert lines[3].startswith("question: ")
    assert lines[4].startswith("answer: pytest-loop answer ")


def test_exhausted_search_suggests_another_agent() -> None:
    story = RunStory("a.x", agents=("builtin",), max_iterations=1).evaluate(["a.x"]).end("iteration_limit")
    (line,) = [line for line in end(story) if line.startswith("continue: ")]
    assert "--max-iterations 5 --agent NAME (another agent: " in line


def test_edit_that_a_limit_left_unjudged_can_be_undone() -> None:
    story = RunStory("a.x", max_completed_phase_seconds=3).evaluate(["a.x"]).add(Kind.CRITIQUE_DONE, issues=[])
    change = {"modified": ["shop.py"]}
    story.add(Kind.REFINEMENT_DONE, artifact_hash="b" * 64, change=change, seconds=2.0).end("budget_exceeded")
    lines = end(story)
    assert lines[-1] == "diff: pytest-loop diff · report: pytest-loop report · undo: pytest-loop restore 0"
    assert lines[-2].startswith("continue: pytest-loop resume --run green --limit LIMIT (a higher one, ")


def test_failure_names_the_step_that_failed() -> None:
    story = RunStory("a.x").evaluate(["a.x"])
    for _ in range(2):
        story.add(Kind.PHASE_ERROR, step="REFINE", reason="no answer")
    assert [line for line in tell(story) if "editing" in line] == ["     editing failed, and is tried again: no answer"]
    lines = end(story.end("phase_error"))
    assert lines[0].startswith("failed after 0:01 · phase_error: ")
    assert "editing failed: no answer" in lines


def test_failure_of_an_agent_that_cannot_judge_offers_another_one() -> None:
    story = RunStory("a.x", target=Target.ARTIFACT).add(Kind.PLAN_CREATED, plan=["x"])
    story.add(Kind.PHASE_ERROR, step="PREPARE", reason="expected a JSON object", final=True).end("phase_error")
    flag = "--judge NAME (another agent that turns sentences into checks)"
    assert f"continue: pytest-loop resume --run green {flag}" in end(story)


def test_stop_of_a_working_agent_says_how_to_undo_what_it_left() -> None:
    story = RunStory("a.x").evaluate(["a.x"]).add(Kind.CRITIQUE_DONE, issues=[]).end("enough")
    assert (
        end(story)[-1] == "report: pytest-loop report · undo: pytest-loop restore 0 (unfinished edits stay until then)"
    )


def test_failure_without_an_agent_says_how_to_name_one() -> None:
    story = RunStory("a.x", agents=()).evaluate(["a.x"])
    story.add(Kind.PHASE_ERROR, step="REFINE", reason="nobody to ask", final=True).end("phase_error")
    assert "continue: pytest-loop resume --run green --agent NAME (pytest-loop agents lists all)" in end(story)


def test_held_out_rules_are_scored_apart() -> None:
    story = RunStory("a.x").evaluate(held_out=0.5).add(Kind.PHASE_SWITCHED).end("threshold_reached")
    assert "held out: the rules that no agent has seen score 0.5, all of them 1" in end(story)


def test_document_is_named_at_the_end() -> None:
    story = RunStory("a.x", target=Target.ARTIFACT, artifact="guide.md").add(Kind.PLAN_CREATED, plan=["x"])
    story.add(Kind.ARTIFACT_CREATED, artifact_hash="1")
    story.evaluate(artifact_hash="1").add(Kind.PHASE_SWITCHED).end("threshold_reached")
    assert " · document guide.md · cost unknown · " in end(story)[0]
    assert end(story)[-1] == "diff: pytest-loop diff · report: pytest-loop report"


# -- one run in detail


def test_show_has_every_failure_with_its_whole_message(shop: RunStory) -> None:
    assert list(render_unmet_rules(shop.first_state)) == ["green: nothing was judged"]
    assert list(render_unmet_rules(shop.state)) == [
        "green: 1 of 3 pass",
        "  tests/test_shop.py::test_sum (fail)",
        "    tests/test_shop.py:3: AssertionError: assert 11 == 12 + where 11 = total()",
        "  tests/test_shop.py::test_name (fail)",
        "    shop.py:9: TypeError: no",
    ]


def test_whole_diff_has_colours() -> None:
    lines = list(paint_diff(DIFF, Look(is_coloured=True)))
    assert lines[0] == "\x1b[1m--- a/shop.py\x1b[0m"
    assert lines[-1] == "\x1b[32m+    return 12\x1b[0m"
    assert list(paint_diff(" same", Look(is_coloured=True))) == [" same"]


def test_edits_that_were_put_back_and_new_tests_are_named_at_the_end() -> None:
    finding = {"kind": "sealed", "path": "tests/test_shop.py", "detail": "was changed, and was put back"}
    new_tests = {"total": 3, "failing": ["test_new.py::test_it"]}
    story = RunStory("a.x").evaluate(["a.x"], findings=[finding], void=True, new_tests=new_tests)
    lines = end(story.end("iteration_limit"), Look(width=300))
    assert (
        "put back: tests/test_shop.py (--loop-unseal GLOB permits such edits in a new run; "
        "copies are in `discarded` of the run's folder)"
    ) in lines
    assert "new tests: 3, test_new.py::test_it fails (not part of the score)" in lines


def test_first_version_of_a_document_is_no_empty_change() -> None:
    assert describe_change(ChangedParts(is_first=True), Target.ARTIFACT) == "wrote the first version"
    assert describe_change(ChangedParts(), Target.ARTIFACT) == "changed nothing"


def test_draft_names_the_template_and_not_its_file() -> None:
    rule = RunRule(id="a.x.y", description="It is so", key="/somewhere/templates/docs.rules.yaml::a.x.y")
    story = RunStory(rule, task="Write a guide", target=Target.ARTIFACT, artifact="guide.md")
    lines = draft(story, DraftFacts({rule.key: "template docs"}))
    assert any(line.startswith("judge: template docs") for line in lines)
    assert not any("somewhere" in line for line in lines)
