"""Reports of items become the evaluation that a run stores."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_loop.core.judging.assessment import MAX_ALL_DETAILS, MAX_DETAILS, MAX_FINDINGS, assess, group_verdicts
from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from tests.core.scripted_run import ScriptedRun, make_rule

WARN, INFO = Severity.WARN, Severity.INFO
PASSED = [Evidence(outcome=Outcome.PASSED)]


def build_failure(found: str = "no", expected: str = "", where: str = "", detail: str = "") -> list[Evidence]:
    finding = Finding(expected=expected, found=found, where=where, detail=detail)
    return [Evidence(outcome=Outcome.FAILED, findings=(finding,))]


def judge(
    *rules: RunRule,
    phase: Phase = Phase.B,
    previous: Evaluation | None = None,
    **reported: list[Evidence],
) -> Evaluation:
    """Judge rules, which pass unless evidence is given under their last word."""
    evidence = {rule.id: reported.get(rule.id.rpartition(".")[2], PASSED) for rule in rules}
    return assess(RunCriteria(rules=rules), phase, evidence, "abcdef0123456789", previous)


def test_failures_are_listed_and_passes_are_counted() -> None:
    evaluation = judge(
        make_rule("a.x.y"), make_rule("a.x.w", WARN), make_rule("b.x.z"), y=build_failure(), w=build_failure("hm")
    )
    assert (evaluation.total, evaluation.passing, evaluation.passed) == (3, 1, False)
    assert (evaluation.earned, evaluation.possible, evaluation.score) == (Fraction(2), Fraction(5), 0.4)
    assert [(entry.id, entry.severity, entry.message) for entry in evaluation.failed] == [
        ("a.x.y", Severity.FAIL, "no")
    ]
    assert [(entry.id, entry.severity, entry.message) for entry in evaluation.warnings] == [("a.x.w", WARN, "hm")]
    assert [entry.id for entry in evaluation.rule_results] == ["a.x.y", "a.x.w"]
    assert evaluation.unmet == {"a.x.y", "a.x.w"}
    assert (evaluation.artifact_hash, evaluation.artifact_sha256) == ("abcdef01", "abcdef0123456789")


def test_verdicts_of_all_active_rules_are_grouped_by_severity() -> None:
    rules = (make_rule("a.x.y"), make_rule("a.x.w", WARN), make_rule("a.x.v"), make_rule("b.x.z"))
    evaluation = judge(*rules, phase=Phase.A, y=build_failure())
    assert group_verdicts(RunCriteria(rules=rules), evaluation) == {
        Verdict.FAIL: {Severity.FAIL: ["a.x.y"]},
        Verdict.PASS: {WARN: ["a.x.w"], Severity.FAIL: ["a.x.v"]},
    }


def test_phase_a_judges_only_its_own_rules() -> None:
    evaluation = judge(make_rule("a.x.y"), make_rule("b.x.z"), phase=Phase.A, z=build_failure())
    assert (evaluation.total, evaluation.passed, evaluation.phase) == (1, True, Phase.A)


def test_rule_without_a_report_has_failed() -> None:
    evaluation = assess(RunCriteria(rules=(make_rule(),)), Phase.A, {}, "")
    assert evaluation.failed[0].message == "not verified: no report arrived"


def test_reports_are_found_by_the_key_of_a_rule() -> None:
    criteria = RunCriteria(rules=(make_rule(key="it.rules.yaml::a.x.y"),))
    assert assess(criteria, Phase.A, {"it.rules.yaml::a.x.y": PASSED}, "").passed
    assert not assess(criteria, Phase.A, {"a.x.y": PASSED}, "").passed


def test_failing_info_rule_appears_only_in_the_results() -> None:
    evaluation = judge(make_rule("a.x.y"), make_rule("a.x.i", INFO), i=build_failure())
    assert [(entry.id, entry.verdict) for entry in evaluation.rule_results] == [("a.x.i", Verdict.FAIL)]
    assert (evaluation.failed, evaluation.warnings, evaluation.unmet, evaluation.passed) == ((), (), frozenset(), True)


def test_high_score_does_not_pass_with_a_blocker() -> None:
    """Vector 6: 20/22 is above 0.9."""
    warnings = [make_rule(f"a.x.w{number}", WARN) for number in range(20)]
    evaluation = judge(*warnings, make_rule("a.x.y"), y=build_failure())
    assert evaluation.score == pytest.approx(20 / 22, abs=1e-6)
    assert not evaluation.passed


def test_unconfirmed_rule_is_an_assumption_and_skipped_rule_is_not() -> None:
    assumed, skipped = [Evidence(outcome=Outcome.ASSUMED)], [Evidence(outcome=Outcome.SKIPPED)]
    evaluation = judge(make_rule("a.x.y"), make_rule("a.x.m"), make_rule("a.x.w", WARN), m=assumed, w=skipped)
    assert (evaluation.assumptions, evaluation.possible) == (("a.x.m",), Fraction(2))


def test_failing_must_not_rule_is_listed() -> None:
    evaluation = judge(make_rule("a.x.y"), make_rule("a.x.n", WARN, must_not=True), n=build_failure())
    assert (evaluation.must_not, [entry.id for entry in evaluation.failed]) == (("a.x.n",), ["a.x.n"])


# -- regressions


def test_regression_passed_before_and_fails_now() -> None:
    rules = (make_rule("a.x.y"), make_rule("a.x.w", WARN), make_rule("a.x.z"))
    before = judge(*rules, z=build_failure())
    assert judge(*rules, previous=before, y=build_failure(), w=build_failure(), z=build_failure()).regressions == (
        "a.x.y",
        "a.x.w",
    )
    assert judge(*rules, y=build_failure()).regressions == ()


def test_rule_that_was_not_judged_before_is_no_regression() -> None:
    rules = (make_rule("a.x.y"), make_rule("b.x.z"), make_rule("a.x.m"))
    assumed = [Evidence(outcome=Outcome.ASSUMED)]
    before = judge(*rules, phase=Phase.A, m=assumed)
    assert judge(*rules, previous=before, z=build_failure(), m=build_failure()).regressions == ()
    assert judge(*rules, previous=judge(*rules), m=assumed).regressions == ()


def test_regressions_after_an_evaluation_that_lists_passes() -> None:
    before = Evaluation.model_validate(
        {
            "score": 0.5,
            "passed": False,
            "failed": [{"id": "a.x.z"}],
            "rule_results": [{"id": "a.x.y", "verdict": "pass"}],
        }
    )
    rules = (make_rule("a.x.y"), make_rule("a.x.z"))
    assert judge(*rules, previous=before, y=build_failure(), z=build_failure()).regressions == ("a.x.y",)


# -- details of a failure


def test_texts_of_findings_are_sanitized() -> None:
    dirty = build_failure("bad\x1b[2K\r\u202eood", "a\nb", "x\u200b.py:3\n", "one\x1b[31m\ntwo")
    finding = judge(make_rule("a.x.y"), y=dirty).rule_results[0].findings[0]
    assert finding == Finding(expected="a b", found="ood", where="x.py:3", detail="one\ntwo")


def test_details_of_a_failure_are_limited() -> None:
    findings = tuple(Finding(expected="e" * 999, found="f" * 999, detail="d" * 9_999) for _ in range(MAX_FINDINGS + 3))
    evaluation = judge(make_rule("a.x.y"), y=[Evidence(outcome=Outcome.FAILED, findings=findings)]).rule_results[0]
    assert (len(evaluation.findings), evaluation.more, len(evaluation.details)) == (MAX_FINDINGS, 3, MAX_DETAILS)
    assert len(evaluation.findings[0].detail) == MAX_DETAILS
    assert len(evaluation.findings[0].found) == len(evaluation.findings[0].expected) == 300


def test_details_are_shorter_if_many_rules_fail() -> None:
    rules = [make_rule(f"a.x.y{number}") for number in range(1_000)]
    evidence = {broken.id: build_failure("f" * 9_999, detail="d" * 9_999) for broken in rules}
    evaluation = assess(RunCriteria(rules=tuple(rules)), Phase.A, evidence, "")
    assert len(evaluation.model_dump_json()) < 5 * MAX_ALL_DETAILS


def test_signature_does_not_depend_on_other_failures() -> None:
    rules = [make_rule(f"a.x.y{number}") for number in range(1_000)]
    text = build_failure("x.py:7: " + "f" * 1_500)
    few = assess(
        RunCriteria(rules=tuple(rules)), Phase.A, {passing.id: PASSED for passing in rules} | {"a.x.y0": text}, ""
    )
    many = assess(RunCriteria(rules=tuple(rules)), Phase.A, {broken.id: text for broken in rules}, "")
    assert few.rule_results[0].signature == many.rule_results[0].signature


def test_held_out_rule_stores_no_details_and_scores_apart() -> None:
    hidden, visible = make_rule("a.x.hidden", held_out=True), make_rule("a.x.seen")
    evaluation = judge(
        hidden,
        make_rule("a.x.other", held_out=True),
        visible,
        hidden=build_failure("the answer is 42", detail="traceback"),
    )
    assert (evaluation.held_out, evaluation.passed) == (0.5, False)
    assert "42" not in evaluation.model_dump_json()
    assert [(entry.id, entry.message) for entry in evaluation.failed] == [("a.x.hidden", "")]
    assert judge(visible).held_out is None
    assert judge(make_rule("a.x.info", INFO, held_out=True), info=build_failure()).held_out == 1
    critique = build_critique(RunCriteria(rules=(hidden, visible)), evaluation)
    assert critique.issues == ()


def test_guards_block_and_are_not_counted_among_the_rules() -> None:
    run = ScriptedRun(make_rule(), make_rule("t::x", weight=0, guard=True)).evaluate("t::x")
    evaluation = run.state.evaluation
    assert (evaluation.score, evaluation.passed, evaluation.passing, evaluation.total) == (1, False, 1, 1)
    assert [complaint.id for complaint in evaluation.failed] == ["t::x"]


def test_rule_that_cannot_be_judged_neither_passes_nor_fails() -> None:
    unchecked = [Evidence(outcome=Outcome.UNCHECKED, text="the tool is missing")]
    rules = (make_rule("a.x.y"), make_rule("a.x.z"), make_rule("a.x.no", WARN, must_not=True), make_rule("a.x.w", WARN))
    before = judge(*rules)
    evaluation = judge(*rules, previous=before, y=unchecked, no=unchecked, w=unchecked)
    assert (evaluation.passed, evaluation.failed, evaluation.warnings, evaluation.must_not) == (False, (), (), ())
    assert [(error.id, error.severity, error.message) for error in evaluation.errors] == [
        ("a.x.y", Severity.FAIL, "the tool is missing"),
        ("a.x.no", Severity.FAIL, "the tool is missing"),
        ("a.x.w", WARN, "the tool is missing"),
    ]
    assert (evaluation.score, evaluation.regressions, evaluation.unmet) == (0.333333, (), frozenset())
    assert {result.verdict for result in evaluation.rule_results} == {Verdict.ERROR}
    assert not evaluation.is_clean
    assert build_critique(RunCriteria(rules=rules), evaluation).issues == ()


def test_failure_counts_more_than_an_error_of_another_item() -> None:
    pieces = [Evidence(outcome=Outcome.UNCHECKED, text="odd"), *build_failure("wrong")]
    evaluation = judge(make_rule("a.x.y"), y=pieces)
    assert [complaint.message for complaint in evaluation.failed] == ["wrong"]
    assert evaluation.errors == ()
