"""What to mend next: few issues, the right ones, and never too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import MOST_ISSUES, MOST_TOKENS, build_critique, render_critique
from pytest_loop.core.model.evaluation import Assessment, Critique, Issue, Novelty, RuleResult, SealFinding
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.text.lengths import estimate_tokens

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]
WARN, INFO = Severity.WARN, Severity.INFO


def criticised(*rules: RunRule, tokens: int = MOST_TOKENS, **failing: Finding | list[Finding] | str) -> Critique:
    """Rules pass unless something is said under their last word."""
    reported = {}
    for rule in rules:
        said = failing.get(rule.id.rpartition(".")[2])
        findings = said if isinstance(said, list) else [said] if isinstance(said, Finding) else []
        outcome = Outcome.PASSED if said is None else Outcome.FAILED
        text = said if isinstance(said, str) else ""
        reported[rule.id] = [Evidence(outcome=outcome, text=text, findings=tuple(findings))]
    criteria = RunCriteria(rules=rules)
    return build_critique(criteria, assess(criteria, Phase.B, reported, ""), (), tokens)


def ids(what: Critique) -> list[str]:
    return [issue.rule_id for issue in what.issues]


# -- which


def test_the_most_important_come_first(rule: Make) -> None:
    rules = [
        rule("a.x.light", weight=1), rule("a.x.heavy", weight=5), rule("a.x.usual"),
        rule("a.x.never", WARN, weight=0, must_not=True),
    ]  # fmt: skip
    what = criticised(*rules, light="l", heavy="h", usual="u", never="n")
    assert ids(what) == ["a.x.never", "a.x.heavy", "a.x.usual", "a.x.light"]


def test_warnings_are_told_only_where_nothing_blocks(rule: Make) -> None:
    rules = [rule("a.x.y"), rule("a.x.w", WARN, weight=99), rule("a.x.i", INFO)]
    assert ids(criticised(*rules, y="no", w="hm", i="oh")) == ["a.x.y"]
    assert ids(criticised(*rules, w="hm", i="oh")) == ["a.x.w"]
    assert ids(criticised(*rules, i="oh")) == []


def test_at_most_five_issues_and_how_many_were_left_out(rule: Make) -> None:
    rules = [rule(f"a.x.y{number}") for number in range(9)]
    failing: dict[str, Any] = {f"y{number}": f"other {number}" for number in range(9)}
    what = criticised(*rules, **failing)
    assert (len(what.issues), what.left_out) == (MOST_ISSUES, 4)
    assert render_critique(what).endswith("4 more rules fail; mend these first.")


def test_of_two_causes_that_matter_the_same_the_wider_comes_first(rule: Make) -> None:
    rules = [rule("a.x.lone"), rule("a.x.one"), rule("a.x.two")]
    assert ids(criticised(*rules, lone="lonely", one="shared", two="shared")) == ["a.x.one", "a.x.lone"]


def test_a_result_of_a_rule_that_is_not_in_the_criteria_is_ignored(rule: Make) -> None:
    one = Assessment(score=0, passed=False, rule_results=(RuleResult(id="gone", verdict=Verdict.FAIL),))
    assert build_critique(RunCriteria(rules=(rule(),)), one) == Critique()


# -- one cause, one issue


def crash(where: str, message: str) -> Finding:
    return Finding(expected="", found=message, where=where, detail=f"    total()\nE   {message}\n\n{where}: Error")


CAUSES: list[Callable[[int], Finding]] = [
    lambda number: crash("shop/cart.py:12", "KeyError: 'currency'"),
    lambda number: crash(f"tests/test_{number}.py:1", "ImportError: cannot import name 'Cart' from 'shop'"),
    lambda number: crash("tests/helpers.py:7", "assert 3 == 4"),
    lambda number: crash("tests/conftest.py:9", f"TimeoutError: no answer after {number}.5 s (seed: {number})"),
    lambda number: Finding(expected="exit code 0 of `ruff check`", found="exit code 1", detail=f"line {number}"),
]


def test_two_hundred_failures_of_five_causes_name_all_five(rule: Make) -> None:
    rules = [rule(f"tests/test_{number}.py::test_it") for number in range(200)]
    criteria = RunCriteria(rules=tuple(rules))
    reported = {
        one.id: [Evidence(outcome=Outcome.FAILED, findings=(CAUSES[number % 5](number),))]
        for number, one in enumerate(rules)
    }
    what = build_critique(criteria, assess(criteria, Phase.A, reported, ""))
    text = render_critique(what)
    assert [issue.others for issue in what.issues] == [39] * 5
    assert what.left_out == 0
    for name in ("'currency'", "'Cart'", "assert 3 == 4", "TimeoutError", "ruff check"):
        assert name in text
    assert text.count("and 36 more") == 5


def test_two_assertions_that_say_the_same_are_two_causes(rule: Make) -> None:
    one, other = crash("tests/test_a.py:3", "assert False"), crash("tests/test_b.py:3", "assert False")
    assert len(criticised(rule("a.x.y"), rule("a.x.z"), y=one, z=other).issues) == 2


def failed_after(source: str, where: str, message: str) -> Finding:
    detail = f"    def test_it():\n>       {source}\nE       {message}\n\n{where}: AssertionError"
    return Finding(expected="", found=message, where=where, detail=detail)


def test_assertions_after_the_same_calls_are_one_issue_only_where_there_is_no_room_for_all(rule: Make) -> None:
    failing: dict[str, Any] = {
        f"t{number}": failed_after(f"assert shop.tax({number}) == 19", f"t.py:{number}", f"assert {number} == 19")
        for number in range(4)
    }
    failing["label"] = failed_after("assert shop.label(1) == 'tea'", "u.py:9", "assert 'TEA' == 'tea'")
    rules = [rule(f"a.x.{name}") for name in failing]
    assert ids(criticised(*rules, **failing)) == ["a.x.t0", "a.x.t1", "a.x.t2", "a.x.t3", "a.x.label"]
    what = criticised(*rules, rule("a.x.other"), other="no", **failing)
    assert [(issue.rule_id, issue.others) for issue in what.issues] == [
        ("a.x.t0", 3),
        ("a.x.label", 0),
        ("a.x.other", 0),
    ]


def test_what_a_test_shows_is_told_without_what_was_said_already(rule: Make) -> None:
    finding = failed_after("assert shop.tax(100) == 19", "tests/test_a.py:3", "assert 20 == 19")
    failing: dict[str, Any] = {"py::test_tax": finding}
    name = "tests/test_a.py::test_tax"
    assert render_critique(criticised(rule(name, description=name), **failing)) == (
        "1. tests/test_a.py::test_tax (fail, new)\n"
        "   tests/test_a.py:3: assert 20 == 19\n"
        "   |     def test_it():\n"
        "   | >       assert shop.tax(100) == 19\n"
        "   fix: Make it pass"
    )


def test_rules_that_say_nothing_have_nothing_in_common(rule: Make) -> None:
    assert len(criticised(rule("a.x.y"), rule("a.x.z"), y="", z="").issues) == 2


# -- what an issue says


def test_an_issue_says_what_where_expected_found_and_how_to_mend_it(rule: Make) -> None:
    finding = Finding(expected="`/courses`", found="no match", where="api.yaml:3", detail="paths:\n  /users: {}")
    what = criticised(rule("a.x.y", fix="Add the path"), y=finding)
    assert what.issues == (
        Issue(
            rule_id="a.x.y",
            problem="api.yaml:3: expected `/courses`, found no match",
            fix_instruction="Add the path",
            expected_effect="it passes",
            where="api.yaml:3",
            expected="`/courses`",
            found="no match",
            lines="paths:\n  /users: {}",
        ),
    )
    assert render_critique(what) == (
        "1. a.x.y (fail, new)\n"
        "   api.yaml:3: expected `/courses`, found no match\n"
        "   | paths:\n"
        "   |   /users: {}\n"
        "   fix: Add the path"
    )


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"description": "All is well"}, "Make this true: All is well"),
        ({"description": "A secret is in it", "must_not": True}, "This must not be so: A secret is in it"),
        ({"description": "a.x.y", "must_not": True}, "This must not be so: a.x.y"),
        ({"fix": "do\nthis"}, "do this"),
    ],
)
def test_without_advice_the_rule_itself_is_the_aim(rule: Make, fields: dict[str, Any], advice: str) -> None:
    assert criticised(rule("a.x.y", **fields), y="no").issues[0].fix_instruction == advice


def test_further_findings_are_counted_and_shown_where_nothing_else_explains(rule: Make) -> None:
    many = [Finding(expected="", found=f"problem {number}") for number in range(8)]
    text = render_critique(criticised(rule("a.x.y"), y=many))
    assert "problem 0 (and 7 more)\n   | problem 1\n" in text


def test_an_issue_names_some_of_the_rules_with_the_same_cause(rule: Make) -> None:
    what = criticised(rule("a.x.y"), rule("a.x.z"), y="same", z="same")
    assert (what.issues[0].also, what.issues[0].expected_effect) == (("a.x.z",), "it passes, and 1 more with it")
    assert "   the same cause fails a.x.z\n" in render_critique(what)


def test_an_issue_is_new_repeated_or_a_regression(tell: Tell, rule: Make) -> None:
    story = tell(rule("a.x.y"), rule("a.x.z"), max_iterations=9)

    def novelties() -> dict[str, tuple[Novelty, int]]:
        story.until(Kind.REFINEMENT_DONE)
        assert story.state.critique
        return {issue.rule_id: (issue.novelty, issue.times) for issue in story.state.critique.issues}

    story.judged("a.x.y")
    assert novelties() == {"a.x.y": (Novelty.NEW, 1)}
    story.judged("a.x.y", "a.x.z")
    assert novelties() == {"a.x.y": (Novelty.REPEATED, 2), "a.x.z": (Novelty.REGRESSION, 1)}
    assert story.state.critique
    assert "a.x.y (fail, repeated 2 times)" in render_critique(story.state.critique)
    story.judged("a.x.y", message="something else")
    assert novelties() == {"a.x.y": (Novelty.NEW, 1)}


# -- how long

HUGE = st.sampled_from(["x", "漢", "🎉", "word ", "long line " * 30 + "\n", "\n"]).flatmap(
    lambda piece: st.integers(0, 30_000 // len(piece)).map(lambda times: piece * times)
)


@given(
    texts=st.lists(st.tuples(HUGE, HUGE, HUGE), min_size=1, max_size=8),
    budget=st.sampled_from([0, 1, 50, 200, MOST_TOKENS, 9_000]),
)
@settings(max_examples=40, deadline=None)
def test_a_critique_is_never_longer_than_allowed(texts: list[tuple[str, str, str]], budget: int) -> None:
    rules = tuple(
        RunRule(id=f"{number}{name[:9_999]}", description=name, fix=fix or None)
        for number, (name, fix, _) in enumerate(texts)
    )
    criteria = RunCriteria(rules=rules)
    reported = {
        rule.id: [
            Evidence(outcome=Outcome.FAILED, findings=(Finding(expected=text, found=text, where=text, detail=text),))
        ]
        for rule, (_, _, text) in zip(rules, texts, strict=True)
    }
    what = build_critique(criteria, assess(criteria, Phase.A, reported, ""), (), budget)
    assert len(what.issues) <= MOST_ISSUES
    assert estimate_tokens(render_critique(what)) <= budget


@given(HUGE, st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_a_critique_that_somebody_else_made_is_not_longer_either(text: str, count: int) -> None:
    issue = Issue(rule_id=text, problem=text, fix_instruction=text, lines=text, also=(text,) * 3, others=9)
    assert estimate_tokens(render_critique(Critique(issues=(issue,) * count, left_out=9))) <= MOST_TOKENS


def test_the_last_lines_are_shown_where_there_is_no_room_for_all(rule: Make) -> None:
    detail = "\n".join(f"line number {number}" for number in range(100))
    text = render_critique(criticised(rule("a.x.y"), tokens=200, y=Finding(expected="", found="no", detail=detail)))
    shown = [line for line in text.splitlines() if line.startswith("   | ")]
    assert shown[-1] == "   | line number 99"
    assert 5 < len(shown) < 40


def test_nothing_fails_and_nothing_is_said(rule: Make) -> None:
    assert render_critique(criticised(rule())) == ""


def test_tampering_with_the_judge_comes_first_and_what_is_only_reported_is_not_told() -> None:
    signs = [SealFinding(kind="sealed", path=f"tests/test_{number}.py", detail="was changed") for number in range(5)]
    one = Assessment(score=1, passed=True, void=True, findings=(*signs, SealFinding(kind="literal", path="a.py")))
    made = build_critique(RunCriteria(), one)
    assert [issue.rule_id for issue in made.issues] == ["the judge itself"]
    assert made.issues[0].problem == (
        "tests/test_0.py: was changed; tests/test_1.py: was changed; tests/test_2.py: was changed (and 2 more)"
    )
    assert build_critique(RunCriteria(), one.model_copy(update={"findings": signs[5:]})).issues == ()


def test_suspicious_lines_close_the_critique(rule: Make) -> None:
    made = criticised(rule("a.x.one"), one=Finding(expected="1", found="2"))
    assert "Suspicious" not in render_critique(made)
    lines = ("shop.py:3 (0.90) return a - b", f"shop.py:9 (0.50) {'x' * 400}")
    whole = render_critique(made.model_copy(update={"suspects": lines}))
    head, first, second = whole.splitlines()[-3:]
    assert head == "Suspicious lines, because failing tests run them and passing ones seldom do:"
    assert first == "   shop.py:3 (0.90) return a - b"
    assert estimate_tokens(second) < 80
    assert estimate_tokens(render_critique(made.model_copy(update={"suspects": lines * 99, "tokens": 200}))) <= 200
