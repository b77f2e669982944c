"""A critique holds few issues, the most important ones, within its tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import MAX_ISSUES, MAX_TOKENS, build_critique, render_critique
from pytest_loop.core.model.evaluation import Critique, Evaluation, Issue, Novelty, RuleResult, SealFinding
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.text.lengths import estimate_tokens
from tests.core.scripted_run import ScriptedRun, make_rule

WARN, INFO = Severity.WARN, Severity.INFO


def criticize(*rules: RunRule, tokens: int = MAX_TOKENS, **failing: Finding | list[Finding] | str) -> Critique:
    """Build the critique of rules, which pass unless a problem is given under their last word."""
    reported = {}
    for rule in rules:
        problem = failing.get(rule.id.rpartition(".")[2])
        findings = problem if isinstance(problem, list) else [problem] if isinstance(problem, Finding) else []
        outcome = Outcome.PASSED if problem is None else Outcome.FAILED
        text = problem if isinstance(problem, str) else ""
        reported[rule.id] = [Evidence(outcome=outcome, text=text, findings=tuple(findings))]
    criteria = RunCriteria(rules=rules)
    return build_critique(criteria, assess(criteria, Phase.B, reported, ""), (), tokens)


def list_ids(critique: Critique) -> list[str]:
    return [issue.rule_id for issue in critique.issues]


# -- which


def test_most_important_issues_come_first() -> None:
    rules = [
        make_rule("a.x.light", weight=1), make_rule("a.x.heavy", weight=5), make_rule("a.x.usual"),
        make_rule("a.x.never", WARN, weight=0, must_not=True),
    ]  # fmt: skip
    critique = criticize(*rules, light="l", heavy="h", usual="u", never="n")
    assert list_ids(critique) == ["a.x.never", "a.x.heavy", "a.x.usual", "a.x.light"]


def test_warnings_are_reported_only_if_nothing_blocks() -> None:
    rules = [make_rule("a.x.y"), make_rule("a.x.w", WARN, weight=99), make_rule("a.x.i", INFO)]
    assert list_ids(criticize(*rules, y="no", w="hm", i="oh")) == ["a.x.y"]
    assert list_ids(criticize(*rules, w="hm", i="oh")) == ["a.x.w"]
    assert list_ids(criticize(*rules, i="oh")) == []


def test_at_most_five_issues_and_the_number_of_omitted_rules() -> None:
    rules = [make_rule(f"a.x.y{number}") for number in range(9)]
    failing: dict[str, Any] = {f"y{number}": f"other {number}" for number in range(9)}
    critique = criticize(*rules, **failing)
    assert (len(critique.issues), critique.left_out) == (MAX_ISSUES, 4)
    assert render_critique(critique).endswith("4 more rules fail; fix these first.")


def test_of_equally_important_causes_the_wider_comes_first() -> None:
    rules = [make_rule("a.x.lone"), make_rule("a.x.one"), make_rule("a.x.two")]
    assert list_ids(criticize(*rules, lone="lonely", one="shared", two="shared")) == ["a.x.one", "a.x.lone"]


def test_result_of_an_unknown_rule_is_ignored() -> None:
    evaluation = Evaluation(score=0, passed=False, rule_results=(RuleResult(id="gone", verdict=Verdict.FAIL),))
    assert build_critique(RunCriteria(rules=(make_rule(),)), evaluation) == Critique()


# -- one cause, one issue


def build_crash(where: str, message: str) -> Finding:
    return Finding(expected="", found=message, where=where, detail=f"    total()\nE   {message}\n\n{where}: Error")


CAUSES: list[Callable[[int], Finding]] = [
    lambda number: build_crash("shop/cart.py:12", "KeyError: 'currency'"),
    lambda number: build_crash(f"tests/test_{number}.py:1", "ImportError: cannot import name 'Cart' from 'shop'"),
    lambda number: build_crash("tests/helpers.py:7", "assert 3 == 4"),
    lambda number: build_crash("tests/conftest.py:9", f"TimeoutError: no answer after {number}.5 s (seed: {number})"),
    lambda number: Finding(expected="exit code 0 of `ruff check`", found="exit code 1", detail=f"line {number}"),
]


def test_two_hundred_failures_of_five_causes_name_all_five() -> None:
    rules = [make_rule(f"tests/test_{number}.py::test_it") for number in range(200)]
    criteria = RunCriteria(rules=tuple(rules))
    reported = {
        broken.id: [Evidence(outcome=Outcome.FAILED, findings=(CAUSES[number % 5](number),))]
        for number, broken in enumerate(rules)
    }
    critique = build_critique(criteria, assess(criteria, Phase.A, reported, ""))
    text = render_critique(critique)
    assert [issue.others for issue in critique.issues] == [39] * 5
    assert critique.left_out == 0
    for name in ("'currency'", "'Cart'", "assert 3 == 4", "TimeoutError", "ruff check"):
        assert name in text
    assert text.count("and 36 more") == 5


def test_equal_assertions_at_different_places_are_two_causes() -> None:
    first, second = build_crash("tests/test_a.py:3", "assert False"), build_crash("tests/test_b.py:3", "assert False")
    assert len(criticize(make_rule("a.x.y"), make_rule("a.x.z"), y=first, z=second).issues) == 2


def build_failure_after(source: str, where: str, message: str) -> Finding:
    detail = f"    def test_it():\n>       {source}\nE       {message}\n\n{where}: AssertionError"
    return Finding(expected="", found=message, where=where, detail=detail)


def test_assertions_after_the_same_calls_are_merged_only_if_there_are_too_many() -> None:
    failing: dict[str, Any] = {
        f"t{number}": build_failure_after(
            f"assert shop.tax({number}) == 19", f"t.py:{number}", f"assert {number} == 19"
        )
        for number in range(4)
    }
    failing["label"] = build_failure_after("assert shop.label(1) == 'tea'", "u.py:9", "assert 'TEA' == 'tea'")
    rules = [make_rule(f"a.x.{name}") for name in failing]
    assert list_ids(criticize(*rules, **failing)) == ["a.x.t0", "a.x.t1", "a.x.t2", "a.x.t3", "a.x.label"]
    critique = criticize(*rules, make_rule("a.x.other"), other="no", **failing)
    assert [(issue.rule_id, issue.others) for issue in critique.issues] == [
        ("a.x.t0", 3),
        ("a.x.label", 0),
        ("a.x.other", 0),
    ]


def test_excerpt_does_not_repeat_the_message() -> None:
    finding = build_failure_after("assert shop.tax(100) == 19", "tests/test_a.py:3", "assert 20 == 19")
    failing: dict[str, Any] = {"py::test_tax": finding}
    name = "tests/test_a.py::test_tax"
    assert render_critique(criticize(make_rule(name, description=name), **failing)) == (
        "1. tests/test_a.py::test_tax (fail, new)\n"
        "   tests/test_a.py:3: assert 20 == 19\n"
        "   |     def test_it():\n"
        "   | >       assert shop.tax(100) == 19\n"
        "   fix: Make it pass"
    )


def test_failures_without_details_are_separate_issues() -> None:
    assert len(criticize(make_rule("a.x.y"), make_rule("a.x.z"), y="", z="").issues) == 2


# -- the text of an issue


def test_issue_states_problem_place_expectation_and_fix() -> None:
    finding = Finding(expected="`/courses`", found="no match", where="api.yaml:3", detail="paths:\n  /users: {}")
    critique = criticize(make_rule("a.x.y", fix="Add the path"), y=finding)
    assert critique.issues == (
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
    assert render_critique(critique) == (
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
def test_without_a_fix_the_description_is_the_instruction(fields: dict[str, Any], advice: str) -> None:
    assert criticize(make_rule("a.x.y", **fields), y="no").issues[0].fix_instruction == advice


def test_further_findings_are_counted_and_quoted_without_details() -> None:
    many = [Finding(expected="", found=f"problem {number}") for number in range(8)]
    text = render_critique(criticize(make_rule("a.x.y"), y=many))
    assert "problem 0 (and 7 more)\n   | problem 1\n" in text


def test_issue_names_rules_with_the_same_cause() -> None:
    critique = criticize(make_rule("a.x.y"), make_rule("a.x.z"), y="same", z="same")
    assert (critique.issues[0].also, critique.issues[0].expected_effect) == (
        ("a.x.z",),
        "it passes, and 1 more with it",
    )
    assert "   the same cause fails a.x.z\n" in render_critique(critique)


def test_issue_is_new_repeated_or_a_regression() -> None:
    run = ScriptedRun(make_rule("a.x.y"), make_rule("a.x.z"), max_iterations=9)

    def find_novelties() -> dict[str, tuple[Novelty, int]]:
        run.advance_to(Kind.REFINEMENT_DONE)
        assert run.state.critique
        return {issue.rule_id: (issue.novelty, issue.times) for issue in run.state.critique.issues}

    run.evaluate("a.x.y")
    assert find_novelties() == {"a.x.y": (Novelty.NEW, 1)}
    run.evaluate("a.x.y", "a.x.z")
    assert find_novelties() == {"a.x.y": (Novelty.REPEATED, 2), "a.x.z": (Novelty.REGRESSION, 1)}
    assert run.state.critique
    assert "a.x.y (fail, repeated 2 times)" in render_critique(run.state.critique)
    run.evaluate("a.x.y", message="something else")
    assert find_novelties() == {"a.x.y": (Novelty.NEW, 1)}


# -- how long

HUGE = st.sampled_from(["x", "漢", "🎉", "word ", "long line " * 30 + "\n", "\n"]).flatmap(
    lambda piece: st.integers(0, 30_000 // len(piece)).map(lambda times: piece * times)
)


@given(
    texts=st.lists(st.tuples(HUGE, HUGE, HUGE), min_size=1, max_size=8),
    budget=st.sampled_from([0, 1, 50, 200, MAX_TOKENS, 9_000]),
)
@settings(max_examples=40, deadline=None)
def test_critique_stays_within_its_tokens(texts: list[tuple[str, str, str]], budget: int) -> None:
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
    critique = build_critique(criteria, assess(criteria, Phase.A, reported, ""), (), budget)
    assert len(critique.issues) <= MAX_ISSUES
    assert estimate_tokens(render_critique(critique)) <= budget


@given(HUGE, st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_foreign_critique_stays_within_its_tokens(text: str, count: int) -> None:
    issue = Issue(rule_id=text, problem=text, fix_instruction=text, lines=text, also=(text,) * 3, others=9)
    assert estimate_tokens(render_critique(Critique(issues=(issue,) * count, left_out=9))) <= MAX_TOKENS


def test_last_lines_are_quoted_if_not_all_fit() -> None:
    detail = "\n".join(f"line number {number}" for number in range(100))
    text = render_critique(criticize(make_rule("a.x.y"), tokens=200, y=Finding(expected="", found="no", detail=detail)))
    shown = [line for line in text.splitlines() if line.startswith("   | ")]
    assert shown[-1] == "   | line number 99"
    assert 5 < len(shown) < 40


def test_critique_without_failures_is_empty() -> None:
    assert render_critique(criticize(make_rule())) == ""


def test_tampering_comes_first_and_reported_kinds_are_omitted() -> None:
    signs = [SealFinding(kind="sealed", path=f"tests/test_{number}.py", detail="was changed") for number in range(5)]
    evaluation = Evaluation(
        score=1, passed=True, void=True, findings=(*signs, SealFinding(kind="literal", path="a.py"))
    )
    critique = build_critique(RunCriteria(), evaluation)
    assert [issue.rule_id for issue in critique.issues] == ["the judge itself"]
    assert critique.issues[0].problem == (
        "tests/test_0.py: was changed; tests/test_1.py: was changed; tests/test_2.py: was changed (and 2 more)"
    )
    assert build_critique(RunCriteria(), evaluation.model_copy(update={"findings": signs[5:]})).issues == ()


def test_file_that_is_not_part_of_the_change_is_named_after_the_failures() -> None:
    sign = SealFinding(kind="left out", path=".tox/a.py", detail="it was set aside")
    rules = (make_rule("a.x.y"),)
    evaluation = assess(RunCriteria(rules=rules), Phase.A, {}, "").model_copy(update={"findings": (sign,)})
    issues = build_critique(RunCriteria(rules=rules), evaluation).issues
    assert [issue.rule_id for issue in issues] == ["a.x.y", "files that are not part of the change"]
    assert issues[-1].problem == ".tox/a.py: it was set aside"


def test_edits_of_other_files_come_last_and_block_nothing() -> None:
    edit = SealFinding(kind="allow", path="notes.txt", detail="was new, and was removed")
    rules = [make_rule(f"a.x.y{number}") for number in range(6)]
    evaluation = assess(RunCriteria(rules=tuple(rules)), Phase.A, {}, "").model_copy(update={"findings": (edit,)})
    issues = build_critique(RunCriteria(rules=tuple(rules)), evaluation).issues
    assert (len(issues), issues[-1].rule_id, issues[-1].severity.value) == (2, "other files", "info")
    assert issues[-1].problem == "notes.txt: was new, and was removed"


def test_suspicious_lines_close_the_critique() -> None:
    critique = criticize(make_rule("a.x.one"), one=Finding(expected="1", found="2"))
    assert "Suspicious" not in render_critique(critique)
    lines = ("shop.py:3 (0.90) return a - b", f"shop.py:9 (0.50) {'x' * 400}")
    text = render_critique(critique.model_copy(update={"suspects": lines}))
    head, first, second = text.splitlines()[-3:]
    assert head == "Suspicious lines, because failing tests run them and passing ones rarely do:"
    assert first == "   shop.py:3 (0.90) return a - b"
    assert estimate_tokens(second) < 80
    assert estimate_tokens(render_critique(critique.model_copy(update={"suspects": lines * 99, "tokens": 200}))) <= 200


def test_broken_guard_is_as_important_as_a_goal_and_named_as_one() -> None:
    rules = (make_rule("a.warn.x", Severity.WARN), make_rule("t::x", weight=0, guard=True))
    run = ScriptedRun(*rules).evaluate("a.warn.x", "t::x")
    critique = build_critique(run.state.criteria, run.state.evaluation)
    assert [issue.rule_id for issue in critique.issues] == ["t::x"]
    assert critique.issues[0].fix_instruction.startswith("Make it pass again: it passed before the first edit")
