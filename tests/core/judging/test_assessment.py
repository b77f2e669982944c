"""From what items reported to the assessment that a run remembers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from pytest_loop.core.judging.assessment import ALL_DETAILS, DETAILS, FINDINGS, assess
from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.model.evaluation import Assessment
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule

Make = Callable[..., RunRule]
WARN, INFO = Severity.WARN, Severity.INFO
PASSED = [Evidence(outcome=Outcome.PASSED)]


def failed(found: str = "no", expected: str = "", where: str = "", detail: str = "") -> list[Evidence]:
    finding = Finding(expected=expected, found=found, where=where, detail=detail)
    return [Evidence(outcome=Outcome.FAILED, findings=(finding,))]


def judged(
    *rules: RunRule,
    phase: Phase = Phase.B,
    previous: Assessment | None = None,
    **reported: list[Evidence],
) -> Assessment:
    """Rules pass unless something is reported under their last word."""
    found = {rule.id: reported.get(rule.id.rpartition(".")[2], PASSED) for rule in rules}
    return assess(RunCriteria(rules=rules), phase, found, "abcdef0123456789", previous)


def test_what_fails_is_listed_and_what_passes_is_counted(rule: Make) -> None:
    one = judged(rule("a.x.y"), rule("a.x.w", WARN), rule("b.x.z"), y=failed(), w=failed("hm"))
    assert (one.total, one.passing, one.passed) == (3, 1, False)
    assert (one.earned, one.possible, one.score) == (Fraction(2), Fraction(5), 0.4)
    assert [(each.id, each.severity, each.message) for each in one.failed] == [("a.x.y", Severity.FAIL, "no")]
    assert [(each.id, each.severity, each.message) for each in one.warnings] == [("a.x.w", WARN, "hm")]
    assert [each.id for each in one.rule_results] == ["a.x.y", "a.x.w"]
    assert one.unmet == {"a.x.y", "a.x.w"}
    assert (one.artifact_hash, one.artifact_sha256) == ("abcdef01", "abcdef0123456789")


def test_phase_a_judges_only_its_own_rules(rule: Make) -> None:
    one = judged(rule("a.x.y"), rule("b.x.z"), phase=Phase.A, z=failed())
    assert (one.total, one.passed, one.phase) == (1, True, Phase.A)


def test_a_rule_that_nobody_reported_on_has_failed(rule: Make) -> None:
    one = assess(RunCriteria(rules=(rule(),)), Phase.A, {}, "")
    assert one.failed[0].message == "not verified: no report arrived"


def test_reports_are_found_by_the_key_of_a_rule(rule: Make) -> None:
    criteria = RunCriteria(rules=(rule(key="it.rules.yaml::a.x.y"),))
    assert assess(criteria, Phase.A, {"it.rules.yaml::a.x.y": PASSED}, "").passed
    assert not assess(criteria, Phase.A, {"a.x.y": PASSED}, "").passed


def test_a_failing_rule_that_is_only_tracked_is_in_the_results_alone(rule: Make) -> None:
    one = judged(rule("a.x.y"), rule("a.x.i", INFO), i=failed())
    assert [(each.id, each.verdict) for each in one.rule_results] == [("a.x.i", Verdict.FAIL)]
    assert (one.failed, one.warnings, one.unmet, one.passed) == ((), (), frozenset(), True)


def test_a_high_score_does_not_pass_with_a_blocker(rule: Make) -> None:
    """Vector 6: 20/22 is above 0.9."""
    warnings = [rule(f"a.x.w{number}", WARN) for number in range(20)]
    one = judged(*warnings, rule("a.x.y"), y=failed())
    assert one.score == pytest.approx(20 / 22, abs=1e-6)
    assert not one.passed


def test_what_nobody_confirmed_is_an_assumption_and_what_was_skipped_is_none(rule: Make) -> None:
    assumed, skipped = [Evidence(outcome=Outcome.ASSUMED)], [Evidence(outcome=Outcome.SKIPPED)]
    one = judged(rule("a.x.y"), rule("a.x.m"), rule("a.x.w", WARN), m=assumed, w=skipped)
    assert (one.assumptions, one.possible) == (("a.x.m",), Fraction(2))


def test_a_forbidden_thing_is_named(rule: Make) -> None:
    one = judged(rule("a.x.y"), rule("a.x.n", WARN, must_not=True), n=failed())
    assert (one.must_not, [each.id for each in one.failed]) == (("a.x.n",), ["a.x.n"])


# -- regressions


def test_a_regression_passed_before_and_fails_now(rule: Make) -> None:
    rules = (rule("a.x.y"), rule("a.x.w", WARN), rule("a.x.z"))
    before = judged(*rules, z=failed())
    assert judged(*rules, previous=before, y=failed(), w=failed(), z=failed()).regressions == ("a.x.y", "a.x.w")
    assert judged(*rules, y=failed()).regressions == ()


def test_a_rule_that_was_not_judged_before_is_no_regression(rule: Make) -> None:
    rules = (rule("a.x.y"), rule("b.x.z"), rule("a.x.m"))
    assumed = [Evidence(outcome=Outcome.ASSUMED)]
    before = judged(*rules, phase=Phase.A, m=assumed)
    assert judged(*rules, previous=before, z=failed(), m=failed()).regressions == ()
    assert judged(*rules, previous=judged(*rules), m=assumed).regressions == ()


def test_an_evaluation_of_another_tool_lists_what_passes_too(rule: Make) -> None:
    before = Assessment.model_validate(
        {
            "score": 0.5,
            "passed": False,
            "failed": [{"id": "a.x.z"}],
            "rule_results": [{"id": "a.x.y", "verdict": "pass"}],
        }
    )
    rules = (rule("a.x.y"), rule("a.x.z"))
    assert judged(*rules, previous=before, y=failed(), z=failed()).regressions == ("a.x.y",)


# -- what is remembered of a failure


def test_texts_are_made_harmless(rule: Make) -> None:
    dirty = failed("bad\x1b[2K\r\u202eood", "a\nb", "x\u200b.py:3\n", "one\x1b[31m\ntwo")
    finding = judged(rule("a.x.y"), y=dirty).rule_results[0].findings[0]
    assert finding == Finding(expected="a b", found="ood", where="x.py:3", detail="one\ntwo")


def test_only_so_much_is_remembered_of_a_failure(rule: Make) -> None:
    many = tuple(Finding(expected="e" * 999, found="f" * 999, detail="d" * 9_999) for _ in range(FINDINGS + 3))
    one = judged(rule("a.x.y"), y=[Evidence(outcome=Outcome.FAILED, findings=many)]).rule_results[0]
    assert (len(one.findings), one.more, len(one.details)) == (FINDINGS, 3, DETAILS)
    assert len(one.findings[0].detail) == DETAILS
    assert len(one.findings[0].found) == len(one.findings[0].expected) == 300


def test_less_is_remembered_where_much_fails(rule: Make) -> None:
    rules = [rule(f"a.x.y{number}") for number in range(1_000)]
    found = {one.id: failed("f" * 9_999, detail="d" * 9_999) for one in rules}
    one = assess(RunCriteria(rules=tuple(rules)), Phase.A, found, "")
    assert len(one.model_dump_json()) < 5 * ALL_DETAILS


def test_a_signature_does_not_depend_on_how_much_else_fails(rule: Make) -> None:
    rules = [rule(f"a.x.y{number}") for number in range(1_000)]
    text = failed("x.py:7: " + "f" * 1_500)
    few = assess(RunCriteria(rules=tuple(rules)), Phase.A, {one.id: PASSED for one in rules} | {"a.x.y0": text}, "")
    many = assess(RunCriteria(rules=tuple(rules)), Phase.A, {one.id: text for one in rules}, "")
    assert few.rule_results[0].signature == many.rule_results[0].signature


def test_a_rule_that_is_held_out_gives_nothing_away_and_scores_apart(rule: Make) -> None:
    hidden, seen = rule("a.x.hidden", holdout=True), rule("a.x.seen")
    one = judged(hidden, rule("a.x.other", holdout=True), seen, hidden=failed("the answer is 42", detail="traceback"))
    assert (one.held_out, one.passed) == (0.5, False)
    assert "42" not in one.model_dump_json()
    assert [(each.id, each.message) for each in one.failed] == [("a.x.hidden", "")]
    assert judged(seen).held_out is None
    assert judged(rule("a.x.info", INFO, holdout=True), info=failed()).held_out == 1
    made = build_critique(RunCriteria(rules=(hidden, seen)), one)
    assert made.issues == ()
