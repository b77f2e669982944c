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
    CriteriaScore,
    Evidence,
    Finding,
    Outcome,
    Phase,
    Rule,
    Severity,
    Verdict,
)

FAIL, WARN, INFO = Severity.FAIL, Severity.WARN, Severity.INFO


def build_rule(name: str = "a.x.y", severity: Severity = FAIL, **fields: Any) -> Rule:
    fields.setdefault("weight", severity.weight)
    fields.setdefault("phase", Phase.B if name.startswith("b.") else Phase.A)
    return Rule(id=name, description=name, severity=severity, **fields)


def report(outcome: Outcome, text: str = "") -> Evidence:
    return Evidence(outcome=outcome, text=text)


PASSED, FAILED = report(Outcome.PASSED), report(Outcome.FAILED)


def evaluate(
    rules: Sequence[Rule],
    phase: Phase = Phase.B,
    failing: Sequence[str] = (),
    thresholds: tuple[str, str] = ("0.8", "0.9"),
) -> CriteriaScore:
    criteria = Criteria(
        name="x",
        source="x",
        rules=tuple(rules),
        thresholds={Phase.A: Fraction(thresholds[0]), Phase.B: Fraction(thresholds[1])},
    )
    return evaluate_criteria(criteria, phase, {rule.id: [FAILED if rule.id in failing else PASSED] for rule in rules})


def build_rules(*rows: tuple[str, Severity]) -> list[Rule]:
    return [build_rule(name, severity) for name, severity in rows]


API = build_rules(
    ("a.endpoints", FAIL), ("a.schemas", FAIL), ("a.examples", FAIL), ("a.errors", WARN),
    ("b.naming", WARN), ("b.pagination", WARN), ("b.auth", FAIL), ("b.descriptions", WARN),
)  # fmt: skip
CODE = build_rules(
    ("a.compiles", FAIL), ("a.logic", FAIL), ("a.functions", FAIL), ("a.types", WARN),
    ("b.errors", WARN), ("b.logging", WARN), ("b.conventions", WARN), ("b.validation", FAIL),
)  # fmt: skip
DOCS = build_rules(
    ("a.accuracy", FAIL), ("a.sections", FAIL), ("a.examples", WARN), ("a.clarity", WARN),
    ("b.structure", WARN), ("b.refs", WARN), ("b.consistency", WARN), ("b.audience", WARN),
)  # fmt: skip
DOCS_THRESHOLDS = ("0.75", "0.85")


def test_api_without_error_responses_passes_phase_a() -> None:
    evaluation = evaluate(API, Phase.A, ["a.errors"])
    assert (evaluation.earned, evaluation.possible) == (Fraction(6), Fraction(7))
    assert evaluation.passed


def test_api_with_three_warnings_misses_the_threshold_of_b() -> None:
    evaluation = evaluate(API, Phase.B, ["b.naming", "b.pagination", "b.descriptions"])
    assert evaluation.score == Fraction(9, 12)
    assert not evaluation.passed
    assert evaluation.blockers == ()


def test_docs_with_one_warning_pass_phase_b() -> None:
    evaluation = evaluate(DOCS, Phase.B, ["b.audience"], DOCS_THRESHOLDS)
    assert evaluation.score == Fraction(9, 10)
    assert evaluation.passed


def test_docs_with_both_warnings_miss_the_threshold_of_a() -> None:
    evaluation = evaluate(DOCS, Phase.A, ["a.examples", "a.clarity"], DOCS_THRESHOLDS)
    assert evaluation.score == Fraction(4, 6)
    assert not evaluation.passed
    assert [result.rule.id for result in evaluation.select_results(Verdict.WARN)] == ["a.examples", "a.clarity"]


def test_code_with_one_failing_rule_does_not_pass() -> None:
    evaluation = evaluate(CODE, Phase.A, ["a.logic"])
    assert evaluation.score == Fraction(5, 7)
    assert not evaluation.passed


def test_high_score_never_passes_with_a_blocker() -> None:
    rules = [build_rule(f"a.w.{number}", WARN) for number in range(20)] + [build_rule("a.f.1")]
    evaluation = evaluate(rules, Phase.B, ["a.f.1"])
    assert evaluation.score == Fraction(20, 22) >= evaluation.threshold
    assert not evaluation.passed


def test_only_info_rules_score_one_and_pass() -> None:
    evaluation = evaluate([build_rule("a.i.1", INFO), build_rule("a.i.2", INFO)], failing=["a.i.1"])
    assert evaluation.score == 1
    assert evaluation.passed


def test_nine_tenths_reach_a_threshold_of_nine_tenths() -> None:
    rules = [build_rule(f"a.w.{number}", WARN, weight=Fraction("0.1")) for number in range(10)]
    assert evaluate(rules, failing=["a.w.3"]).passed


def test_rule_without_any_report_is_not_verified() -> None:
    evaluation = judge_rule(build_rule(), [])
    assert (evaluation.verdict, evaluation.details) == (Verdict.FAIL, "not verified: no report arrived")


def test_skipped_blocking_rule_is_not_verified() -> None:
    assert judge_rule(build_rule(), [report(Outcome.SKIPPED, "no network")]).details == "not verified: no network"
    assert judge_rule(build_rule(), [report(Outcome.SKIPPED)]).details == "not verified: skipped"
    assert judge_rule(build_rule(), [report(Outcome.SKIPPED)]).verdict is Verdict.FAIL


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
def test_verdict_depends_on_severity_and_outcome(severity: Severity, outcome: Outcome, expected: Verdict) -> None:
    assert decide_verdict(build_rule(severity=severity), outcome) is expected


def test_failing_info_rule_does_not_block() -> None:
    evaluation = judge_rule(build_rule(severity=INFO), [FAILED])
    assert evaluation.verdict is Verdict.FAIL
    assert not evaluation.is_blocking


def test_must_not_rule_blocks_whatever_its_severity() -> None:
    evaluation = judge_rule(build_rule(severity=WARN, must_not=True), [FAILED])
    assert evaluation.verdict is Verdict.FAIL
    assert evaluation.is_blocking


def test_several_items_of_one_rule_must_all_pass() -> None:
    worst = judge_rule(
        build_rule(),
        [PASSED, report(Outcome.FAILED, "one"), report(Outcome.FAILED, "two"), report(Outcome.SKIPPED, "no")],
    )
    assert (worst.verdict, worst.details) == (Verdict.FAIL, "one; two")


def test_rules_that_are_not_judged_leave_both_sums() -> None:
    criteria = Criteria(name="x", source="x", rules=(build_rule("a.x.1"), build_rule("a.x.2", WARN)))
    evaluation = evaluate_criteria(criteria, Phase.B, {"a.x.1": [report(Outcome.ASSUMED)], "a.x.2": [PASSED]})
    assert (evaluation.earned, evaluation.possible, evaluation.total) == (Fraction(1), Fraction(1), 2)


def test_rules_that_were_not_selected_are_not_in_the_denominator() -> None:
    criteria = Criteria(name="x", source="x", rules=tuple(API))
    evaluation = evaluate_criteria(criteria, Phase.B, {"a.endpoints": [PASSED]})
    assert (evaluation.possible, evaluation.total, len(evaluation.results)) == (Fraction(2), 8, 1)


def test_rules_of_b_are_not_judged_in_a() -> None:
    assert [result.rule.id for result in evaluate(API, Phase.A).results] == [
        "a.endpoints",
        "a.schemas",
        "a.examples",
        "a.errors",
    ]


def test_details_list_the_findings() -> None:
    finding = Finding(expected="a title", found="none", where="doc.md:1")
    piece = Evidence(outcome=Outcome.FAILED, findings=(finding, Finding(expected="x", found="y")))
    assert judge_rule(build_rule(), [piece]).details == "doc.md:1: expected a title, found none; expected x, found y"


VOTES = build_rule(repeat=5, need="majority")


def test_majority_of_repeats_passes_with_rate_and_interval() -> None:
    decided = report(Outcome.SKIPPED, "already certain")
    evaluation = judge_rule(VOTES, [PASSED, FAILED, PASSED, PASSED, decided])
    assert evaluation.verdict is Verdict.PASS
    assert evaluation.details == "3 of 4 repeats passed, 3 needed of 5 (rate 0.30 to 0.95)"


def test_too_many_misses_fail_with_the_worst_outcome() -> None:
    evaluation = judge_rule(
        VOTES, [FAILED, report(Outcome.FAILED, "too long"), report(Outcome.ERROR, "no judge"), PASSED, PASSED]
    )
    assert evaluation.verdict is Verdict.FAIL
    assert evaluation.details == "2 of 5 repeats passed, 3 needed of 5 (rate 0.12 to 0.77): no judge"


def test_repeats_that_never_ran_are_not_verified() -> None:
    missing = report(Outcome.MISSING)
    evaluation = judge_rule(VOTES, [PASSED, PASSED, missing, missing, missing])
    assert evaluation.verdict is Verdict.FAIL
    assert evaluation.details == "2 of 5 repeats passed, 3 needed of 5 (rate 0.12 to 0.77)"


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
).map(lambda rows: [build_rule(f"a.x.{at}", s, weight=w, phase=p) for at, (s, w, p) in enumerate(rows)])


def evaluate_reports(rules: list[Rule], reported: dict[str, list[Evidence]], phase: Phase = Phase.B) -> CriteriaScore:
    return evaluate_criteria(Criteria(name="x", source="x", rules=tuple(rules)), phase, reported)


@given(rules, st.data())
def test_score_never_falls_when_one_more_rule_passes(rules: list[Rule], data: st.DataObject) -> None:
    reported = {rule.id: [report(data.draw(outcomes))] for rule in rules}
    before = evaluate_reports(rules, reported)
    assert 0 <= before.score <= 1
    better = evaluate_reports(rules, {**reported, data.draw(st.sampled_from(rules)).id: [PASSED]})
    assert better.score >= before.score
    assert better.passed or not before.passed


@given(rules, st.sampled_from(list(Phase)), st.data())
def test_denominator_comes_from_the_rules_even_if_reports_are_lost(
    rules: list[Rule], phase: Phase, data: st.DataObject
) -> None:
    full = {rule.id: [PASSED] for rule in rules}
    lost = {rule.id: data.draw(st.sampled_from([[], [PASSED]])) for rule in rules}
    assert evaluate_reports(rules, lost, phase).possible == evaluate_reports(rules, full, phase).possible
    assert evaluate_reports(rules, full, phase).score == 1


@given(st.integers(1, 200), st.data())
def test_score_at_the_threshold_passes_and_below_fails(total: int, data: st.DataObject) -> None:
    passing = data.draw(st.integers(0, total))
    threshold = Fraction(passing, total)
    rules = [build_rule(f"a.x.{at}", WARN) for at in range(total)]

    def is_passing(number: int) -> bool:
        criteria = Criteria(
            name="x", source="x", rules=tuple(rules), thresholds={Phase.A: threshold, Phase.B: threshold}
        )
        reported = {rule.id: [PASSED if at < number else FAILED] for at, rule in enumerate(rules)}
        return evaluate_criteria(criteria, Phase.B, reported).passed

    assert is_passing(passing)
    assert passing == 0 or not is_passing(passing - 1)


@pytest.mark.parametrize(
    ("score", "expected"), [(0.5, "1/2"), (1, "1"), (True, "0"), (1.5, "0"), (float("nan"), "0"), ("x", "0")]
)
def test_custom_score_must_be_a_number_from_0_to_1(score: Any, expected: str) -> None:
    assert replace_score(evaluate([build_rule()]), score).score == Fraction(expected)
