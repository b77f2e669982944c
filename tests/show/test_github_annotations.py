"""Annotations mark failing lines, are few, and contain no further commands."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.model.rules import (
    CriteriaScore,
    Evidence,
    Finding,
    Outcome,
    Phase,
    Result,
    Rule,
    Severity,
    Verdict,
)
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.show.github_annotations import (
    MAX_ANNOTATIONS,
    find_folder_in_checkout,
    format_mute_command,
    format_unmute_command,
    is_on_github,
    render_annotations,
    render_score_annotations,
)

Failing = dict[str, Finding | str]
COMMAND = re.compile(r"::(error|warning) (file=[^,:\r\n]+(,line=\d+)?,)?title=[^,:\r\n]*::[^\r\n]*")


def annotate(failing: Failing, folder: str = ".", **severities: Severity) -> list[str]:
    """Render the annotations of an evaluation in which these rules fail."""
    rules = tuple(RunRule(id=name, description=name, severity=severities.get(name, Severity.FAIL)) for name in failing)
    reported = {}
    for name, finding in failing.items():
        findings = (finding,) if isinstance(finding, Finding) else ()
        text = finding if isinstance(finding, str) else ""
        reported[name] = [Evidence(outcome=Outcome.FAILED, text=text, findings=findings)]
    criteria = RunCriteria(rules=rules)
    evaluation = assess(criteria, Phase.A, reported, "")
    state = RunState(run_id="x", task_alias="x", task=Task(prompt="x"), criteria=criteria, evaluation=evaluation)
    return list(render_annotations(state, folder))


def test_session_outside_a_run_is_annotated_blocking_rules_first() -> None:
    rules = (
        Rule(id="b.x", description="X", severity=Severity.WARN),
        *(Rule(id=name, description="Y") for name in ("a.y", "a.z")),
    )
    findings = [(build_finding("guide.md:3", "TODO"),), (), (build_finding("", "no"),)]
    verdicts = [Verdict.WARN, Verdict.PASS, Verdict.FAIL]
    results = [
        Result(rule, verdict, "", (Evidence(outcome=Outcome.FAILED, findings=found),))
        for rule, verdict, found in zip(rules, verdicts, findings, strict=True)
    ]
    score = CriteriaScore("guide", "", Phase.B, Fraction(1), Fraction(1), Fraction(1), 3, tuple(results))
    assert list(render_score_annotations([score], "docs")) == [
        "::error title=a.z::no",
        "::warning file=docs/guide.md,line=3,title=b.x::TODO",
    ]


def build_finding(where: str, message: str = "no", **fields: Any) -> Finding:
    return Finding(expected=fields.pop("expected", ""), found=message, where=where, **fields)


def test_failing_line_is_annotated_with_rule_and_finding() -> None:
    assert annotate(
        {
            "tests/test_a.py::test_x[1,2]": build_finding("shop/cart.py:12", "KeyError: 'currency'"),
            "a.content.title": build_finding("guide.md:1:4", "none", expected="a title, 100 %"),
        }
    ) == [
        "::error file=shop/cart.py,line=12,title=tests/test_a.py%3A%3Atest_x[1%2C2]::KeyError: 'currency'",
        "::error file=guide.md,line=1,title=a.content.title::expected a title, 100 %25, found none",
    ]


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (build_finding("guide.md"), "::error file=guide.md,title=x::no"),
        (build_finding(""), "::error title=x::no"),
        (build_finding("C:\\x,y.py:3"), "::error file=C%3A\\x%2Cy.py,line=3,title=x::no"),
        (build_finding("/elsewhere/x.py:3"), "::error file=/elsewhere/x.py,line=3,title=x::no"),
        ("not verified: no report arrived", "::error title=x::not verified: no report arrived"),
        ("", "::error title=x::it fails"),
        ("one\r\ntwo\n::error::three", "::error title=x::one two ::error::three"),
    ],
)
def test_annotation_contains_the_known_fields(finding: Finding | str, line: str) -> None:
    assert annotate({"x": finding}) == [line]


def test_paths_are_relative_to_the_checkout() -> None:
    assert annotate({"x": build_finding("a.py:1")}, "services/shop") == [
        "::error file=services/shop/a.py,line=1,title=x::no"
    ]


def test_warnings_come_last() -> None:
    lines = annotate(
        {"w": build_finding("a.py:1"), "i": build_finding("b.py:1"), "f": build_finding("c.py:1")},
        w=Severity.WARN,
        i=Severity.INFO,
    )
    assert lines == ["::error file=c.py,line=1,title=f::no", "::warning file=a.py,line=1,title=w::no"]


def test_every_cause_is_annotated_before_any_is_annotated_twice() -> None:
    failing: Failing = {f"k{number}": build_finding(f"t{number}.py:1", "KeyError: 'x'") for number in range(40)}
    failing |= {"last": build_finding("shop.py:9", "TypeError: no")}
    lines = annotate(failing)
    assert len(lines) == MAX_ANNOTATIONS
    assert lines[:2] == [
        "::error file=t0.py,line=1,title=k0::KeyError: 'x' (39 more fail for the same cause)",
        "::error file=shop.py,line=9,title=last::TypeError: no",
    ]


def test_line_is_annotated_once() -> None:
    assert (
        len(
            annotate(
                {"x": build_finding("a.py:1", "one"), "y": build_finding("a.py:1", "two"), "z": "three", "u": "four"}
            )
        )
        == 3
    )


def test_run_without_evaluation_has_no_annotations() -> None:
    assert list(render_annotations(RunState(run_id="x", task_alias="x", task=Task(prompt="x")))) == []


HOSTILE = st.sampled_from(
    ["::error::", "\n", "\r", "%0A", "::", ",", ":", "##[error]", "x", "title=", "\x85", "\u2028", " "]
)


@given(*[st.lists(HOSTILE | st.text(max_size=4), max_size=12).map("".join)] * 3)
def test_any_text_stays_within_one_command(name: str, where: str, message: str) -> None:
    lines = annotate({f"x{name}": build_finding(where, message)})
    assert len(lines) == 1
    assert COMMAND.fullmatch(lines[0])
    assert len(lines[0].splitlines()) == 1


@pytest.mark.parametrize(
    ("environment", "answer"), [({}, False), ({"GITHUB_ACTIONS": "1"}, False), ({"GITHUB_ACTIONS": "true"}, True)]
)
def test_github_is_detected_by_its_variable(environment: dict[str, str], answer: bool) -> None:
    assert is_on_github(environment) is answer


@pytest.mark.parametrize(
    ("top", "folder"),
    [("", "."), ("/w/shop", "."), ("/w/shop/", "."), ("/w", "shop"), ("/elsewhere", "."), ("/w/sh", ".")],
)
def test_folder_is_relative_to_the_checkout(top: str, folder: str) -> None:
    assert find_folder_in_checkout(Path("/w/shop"), {"GITHUB_WORKSPACE": top}) == folder
    assert find_folder_in_checkout(Path("/w/shop"), {}) == "."


def test_commands_are_muted_between_the_nonces() -> None:
    assert (format_mute_command("abc"), format_unmute_command("abc")) == ("::stop-commands::abc", "::abc::")
