from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.judging.score import decide_verdict, evaluate_criteria, judge_rule, replace_score
from pytest_loop.core.model.rules import (
    Criteria,
    Evaluation,
    Evidence,
    Finding,
    Outcome,
    Phase,
    Rule,
    Severity,
    Verdict,
)

FAIL, WARN, INFO = Severity.FAIL, Severity.WARN, Severity.INFO


def a_rule(name: str = "a.x.y", severity: Severity = FAIL, **fields: Any) -> Rule:
    fields.setdefault("weight", severity.weight)
    fields.setdefault("phase", Phase.B if name.startswith("b.") else Phase.A)
    return Rule(id=name, description=name, severity=severity, **fields)


def said(outcome: Outcome, text: str = "") -> Evidence:
    return Evidence(outcome=outcome, text=text)


PASSED, FAILED = said(Outcome.PASSED), said(Outcome.FAILED)


def judged(
    rules: Sequence[Rule],
    phase: Phase = Phase.B,
    failing: Sequence[str] = (),
    thresholds: tuple[str, str] = ("0.8", "0.9"),
) -> Evaluation:
    criteria = Criteria(
        name="x",
        source="x",
        rules=tuple(rules),
        thresholds={Phase.A: Fraction(thresholds[0]), Phase.B: Fraction(thresholds[1])},
    )
    return evaluate_criteria(criteria, phase, {rule.id: [FAILED if rule.id in failing else PASSED] for rule in rules})


def severities(*rows: tuple[str, Severity]) -> list[Rule]:
    return [a_rule(name, severity) for name, severity in rows]


API = severities(
    ("a.endpoints", FAIL), ("a.schemas", FAIL), ("a.examples", FAIL), ("a.errors", WARN),
    ("b.naming", WARN), ("b.pagination", WARN), ("b.auth", FAIL), ("b.descriptions", WARN),
)  # fmt: skip
CODE = severities(
    ("a.compiles", FAIL), ("a.logic", FAIL), ("a.functions", FAIL), ("a.types", WARN),
    ("b.errors", WARN), ("b.logging", WARN), ("b.conventions", WARN), ("b.validation", FAIL),
)  # fmt: skip
DOCS = severities(
    ("a.accuracy", FAIL), ("a.sections", FAIL), ("a.examples", WARN), ("a.clarity", WARN),
    ("b.structure", WARN), ("b.refs", WARN), ("b.consistency", WARN), ("b.audience", WARN),
)  # fmt: skip
DOCS_THRESHOLDS = ("0.75", "0.85")


def test_an_api_that_lacks_only_error_responses_passes_phase_a() -> None:
    one = judged(API, Phase.A, ["a.errors"])
    assert (one.earned, one.possible) == (Fraction(6), Fraction(7))
    assert one.passed


def test_an_api_with_three_warnings_misses_the_threshold_of_b_without_a_blocker() -> None:
    one = judged(API, Phase.B, ["b.naming", "b.pagination", "b.descriptions"])
    assert one.score == Fraction(9, 12)
    assert not one.passed
    assert one.blockers == ()


def test_docs_with_one_warning_pass_phase_b() -> None:
    one = judged(DOCS, Phase.B, ["b.audience"], DOCS_THRESHOLDS)
    assert one.score == Fraction(9, 10)
    assert one.passed


def test_docs_with_both_warnings_miss_the_threshold_of_a() -> None:
    one = judged(DOCS, Phase.A, ["a.examples", "a.clarity"], DOCS_THRESHOLDS)
    assert one.score == Fraction(4, 6)
    assert not one.passed


def test_code_with_one_failing_rule_does_not_pass() -> None:
    one = judged(CODE, Phase.A, ["a.logic"])
    assert one.score == Fraction(5, 7)
    assert not one.passed


def test_a_high_score_never_passes_with_a_blocker() -> None:
    rules = [a_rule(f"a.w.{number}", WARN) for number in range(20)] + [a_rule("a.f.1")]
    one = judged(rules, Phase.B, ["a.f.1"])
    assert one.score == Fraction(20, 22) >= one.threshold
    assert not one.passed


def test_only_info_rules_score_one_and_pass() -> None:
    one = judged([a_rule("a.i.1", INFO), a_rule("a.i.2", INFO)], failing=["a.i.1"])
    assert one.score == 1
    assert one.passed


def test_nine_tenths_reach_a_threshold_of_nine_tenths() -> None:
    rules = [a_rule(f"a.w.{number}", WARN, weight=Fraction("0.1")) for number in range(10)]
    assert judged(rules, failing=["a.w.3"]).passed


def test_a_rule_without_any_report_is_not_verified() -> None:
    one = judge_rule(a_rule(), [])
    assert (one.verdict, one.details) == (Verdict.FAIL, "not verified: no report arrived")


def test_a_skipped_rule_that_blocks_is_not_verified() -> None:
    assert judge_rule(a_rule(), [said(Outcome.SKIPPED, "no network")]).details == "not verified: no network"
    assert judge_rule(a_rule(), [said(Outcome.SKIPPED)]).details == "not verified: skipped"
    assert judge_rule(a_rule(), [said(Outcome.SKIPPED)]).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("severity", "outcome", "expected"),
    [
        (FAIL, Outcome.PASSED, Verdict.PASS),
        (FAIL, Outcome.FAILED, Verdict.FAIL),
        (FAIL, Outcome.ERROR, Verdict.FAIL),
        (FAIL, Outcome.MISSING, Verdict.FAIL),
        (FAIL, Outcome.SKIPPED, Verdict.FAIL),
        (FAIL, Outcome.ASSUMED, Verdict.NA),
        (FAIL, Outcome.XFAILED, Verdict.WARN),
        (WARN, Outcome.FAILED, Verdict.WARN),
        (WARN, Outcome.SKIPPED, Verdict.NA),
        (INFO, Outcome.FAILED, Verdict.FAIL),
        (INFO, Outcome.SKIPPED, Verdict.NA),
    ],
)
def test_the_verdict_of_an_outcome(severity: Severity, outcome: Outcome, expected: Verdict) -> None:
    assert decide_verdict(a_rule(severity=severity), outcome) is expected


def test_a_failing_info_rule_is_tracked_and_does_not_block() -> None:
    one = judge_rule(a_rule(severity=INFO), [FAILED])
    assert one.verdict is Verdict.FAIL
    assert not one.is_blocking


def test_a_must_not_rule_blocks_whatever_its_severity() -> None:
    one = judge_rule(a_rule(severity=WARN, must_not=True), [FAILED])
    assert one.verdict is Verdict.FAIL
    assert one.is_blocking


def test_several_items_of_one_rule_must_all_pass() -> None:
    worst = judge_rule(
        a_rule(), [PASSED, said(Outcome.FAILED, "one"), said(Outcome.FAILED, "two"), said(Outcome.SKIPPED, "no")]
    )
    assert (worst.verdict, worst.details) == (Verdict.FAIL, "one; two")


def test_what_is_not_judged_leaves_both_sums() -> None:
    criteria = Criteria(name="x", source="x", rules=(a_rule("a.x.1"), a_rule("a.x.2", WARN)))
    one = evaluate_criteria(criteria, Phase.B, {"a.x.1": [said(Outcome.ASSUMED)], "a.x.2": [PASSED]})
    assert (one.earned, one.possible, one.total) == (Fraction(1), Fraction(1), 2)


def test_rules_that_were_not_selected_are_not_in_the_denominator() -> None:
    criteria = Criteria(name="x", source="x", rules=tuple(API))
    one = evaluate_criteria(criteria, Phase.B, {"a.endpoints": [PASSED]})
    assert (one.possible, one.total, len(one.results)) == (Fraction(2), 8, 1)


def test_rules_of_b_are_not_judged_in_a() -> None:
    assert [one.rule.id for one in judged(API, Phase.A).results] == [
        "a.endpoints",
        "a.schemas",
        "a.examples",
        "a.errors",
    ]


def test_findings_are_what_the_details_say() -> None:
    finding = Finding(expected="a title", found="none", where="doc.md:1")
    piece = Evidence(outcome=Outcome.FAILED, findings=(finding, Finding(expected="x", found="y")))
    assert judge_rule(a_rule(), [piece]).details == "doc.md:1: expected a title, found none; expected x, found y"


VOTES = a_rule(repeat=5, need="majority")


def test_a_majority_of_repeats_passes_and_the_rate_is_told_with_its_interval() -> None:
    decided = said(Outcome.SKIPPED, "already certain")
    one = judge_rule(VOTES, [PASSED, FAILED, PASSED, PASSED, decided])
    assert one.verdict is Verdict.PASS
    assert one.details == "3 of 4 repeats passed, 3 needed of 5 (rate 0.30 to 0.95)"


def test_too_many_misses_fail_and_the_worst_one_is_told() -> None:
    one = judge_rule(VOTES, [FAILED, said(Outcome.FAILED, "too long"), said(Outcome.ERROR, "no judge"), PASSED, PASSED])
    assert one.verdict is Verdict.FAIL
    assert one.details == "2 of 5 repeats passed, 3 needed of 5 (rate 0.12 to 0.77): no judge"


def test_repeats_that_never_ran_are_not_verified() -> None:
    missing = said(Outcome.MISSING)
    one = judge_rule(VOTES, [PASSED, PASSED, missing, missing, missing])
    assert one.verdict is Verdict.FAIL
    assert one.details == "2 of 5 repeats passed, 3 needed of 5 (rate 0.12 to 0.77)"


outcomes = st.sampled_from(list(Outcome))
rules = st.lists(
    st.builds(
        lambda severity, weight, phase: (severity, weight, phase),
        st.sampled_from(list(Severity)),
        st.fractions(min_value=0, max_value=10, max_denominator=100),
        st.sampled_from(list(Phase)),
    ),
    min_size=1,
    max_size=12,
).map(lambda rows: [a_rule(f"a.x.{at}", s, weight=w, phase=p) for at, (s, w, p) in enumerate(rows)])


def evaluated(rules: list[Rule], reported: dict[str, list[Evidence]], phase: Phase = Phase.B) -> Evaluation:
    return evaluate_criteria(Criteria(name="x", source="x", rules=tuple(rules)), phase, reported)


@given(rules, st.data())
def test_the_score_is_a_share_and_never_falls_when_one_more_rule_passes(rules: list[Rule], data: st.DataObject) -> None:
    reported = {rule.id: [said(data.draw(outcomes))] for rule in rules}
    before = evaluated(rules, reported)
    assert 0 <= before.score <= 1
    better = evaluated(rules, {**reported, data.draw(st.sampled_from(rules)).id: [PASSED]})
    assert better.score >= before.score
    assert better.passed or not before.passed


@given(rules, st.sampled_from(list(Phase)), st.data())
def test_the_denominator_comes_from_the_rules_even_when_reports_are_lost(
    rules: list[Rule], phase: Phase, data: st.DataObject
) -> None:
    full = {rule.id: [PASSED] for rule in rules}
    lost = {rule.id: data.draw(st.sampled_from([[], [PASSED]])) for rule in rules}
    assert evaluated(rules, lost, phase).possible == evaluated(rules, full, phase).possible
    assert evaluated(rules, full, phase).score == 1


@given(st.integers(1, 200), st.data())
def test_exactly_at_the_threshold_it_passes_and_one_below_it_does_not(total: int, data: st.DataObject) -> None:
    passing = data.draw(st.integers(0, total))
    threshold = Fraction(passing, total)
    rules = [a_rule(f"a.x.{at}", WARN) for at in range(total)]

    def passed(number: int) -> bool:
        criteria = Criteria(
            name="x", source="x", rules=tuple(rules), thresholds={Phase.A: threshold, Phase.B: threshold}
        )
        reported = {rule.id: [PASSED if at < number else FAILED] for at, rule in enumerate(rules)}
        return evaluate_criteria(criteria, Phase.B, reported).passed

    assert passed(passing)
    assert passing == 0 or not passed(passing - 1)


@pytest.mark.parametrize(
    ("score", "expected"), [(0.5, "1/2"), (1, "1"), (True, "0"), (1.5, "0"), (float("nan"), "0"), ("x", "0")]
)
def test_a_score_of_somebodys_own_must_be_a_number_from_0_to_1(score: Any, expected: str) -> None:
    assert replace_score(judged([a_rule()]), score).score == Fraction(expected)
