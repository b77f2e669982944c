from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_loop.core.judging.score import evaluate_criteria
from pytest_loop.core.model.rules import Criteria, Evidence, Outcome, Phase, Rule, Severity
from pytest_loop.core.text.score_text import format_decimal
from pytest_loop.show.score_section import MAX_WIDTH, render_headline, render_score_section


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(1), "1"),
        (Fraction(9, 10), "0.9"),
        (Fraction(8999, 10000), "0.899"),
        (Fraction(2, 3), "0.666"),
        (Fraction(0), "0"),
        (Fraction(13, 2), "6.5"),
    ],
)
def test_numbers_are_rounded_down(number: Fraction, text: str) -> None:
    assert format_decimal(number) == text


def test_long_reason_is_cut_and_put_on_one_line() -> None:
    rule = Rule(id="a.x.y", description="x")
    criteria = Criteria(name="x", source="x", rules=(rule,))
    evaluation = evaluate_criteria(
        criteria, Phase.B, {"a.x.y": [Evidence(outcome=Outcome.FAILED, text="no\nway " * 100)]}
    )
    lines = [line.text for line in render_score_section([evaluation])]
    assert len(lines[1]) == MAX_WIDTH
    assert lines[1].startswith("  blocks: a.x.y: no way no way")


def test_reason_may_be_missing() -> None:
    criteria = Criteria(name="x", source="x", rules=(Rule(id="a.x.y", description="x"),))
    evaluation = evaluate_criteria(criteria, Phase.B, {"a.x.y": [Evidence(outcome=Outcome.FAILED)]})
    assert [line.text for line in render_score_section([evaluation])][1] == "  blocks: a.x.y"
    assert render_headline(evaluation) == "x  FAIL  0 (0 of 2) < 0.9 in phase B, 1 rule: 1 failed"


def test_rule_that_cannot_be_judged_is_named_as_such() -> None:
    criteria = Criteria(name="x", source="x", rules=(Rule(id="a.x.y", description="x"),))
    evidence = [Evidence(outcome=Outcome.UNCHECKED, text="cannot run 'tool'")]
    evaluation = evaluate_criteria(criteria, Phase.B, {"a.x.y": evidence})
    assert [line.text for line in render_score_section([evaluation])] == [
        "x  FAIL  0 (0 of 2) < 0.9 in phase B, 1 rule: 1 cannot be judged",
        "  cannot be judged: a.x.y: cannot run 'tool'",
    ]


@pytest.mark.parametrize(
    ("severity", "verdict", "line"),
    [
        ("fail", "FAIL", "  not verified: a.x.y: a sentence that only an agent can judge"),
        ("warn", "PASS", "  not judged: a.x.y: a sentence that only an agent can judge"),
    ],
)
def test_rule_that_blocks_and_that_nobody_judged_is_not_verified(severity: str, verdict: str, line: str) -> None:
    rule = Rule(id="a.x.y", description="x", severity=Severity(severity))
    evidence = Evidence(outcome=Outcome.ASSUMED, text="a sentence that only an agent can judge")
    evaluation = evaluate_criteria(Criteria(name="x", source="x", rules=(rule,)), Phase.B, {"a.x.y": [evidence]})
    headline, result = [line.text for line in render_score_section([evaluation])]
    assert headline.startswith(f"x  {verdict}  1 ")
    assert result == line
