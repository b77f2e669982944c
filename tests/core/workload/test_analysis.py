from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.workload.analysis import (
    Analysis,
    AnalysisContext,
    EditOption,
    OptionConfidence,
    TriedEdit,
    apply_edit,
    review_answer,
)

PROMPT = """\
# Reading

## Date

Look: label
Say nothing else.

## Total

Labels: Total
Say nothing else.

### Rounding

None.
"""
CONTEXT = AnalysisContext(files={"prompt.md": PROMPT}, cases=frozenset("abc"), failing=frozenset("ab"))


def build_option(**fields: Any) -> dict[str, Any]:
    return {
        "name": "More labels",
        "mechanism": "Every label is tried in turn.",
        "file": "prompt.md",
        "section": "Total",
        "current": "Labels: Total",
        "proposed": "Labels: Total, Sum",
        "improves": ["a"],
        "regresses": [],
        "risk": "low",
        "confidence": "H",
        **fields,
    }


def build_answer(*options: dict[str, Any], **fields: Any) -> dict[str, Any]:
    others = [build_option(), build_option(proposed="Labels: Sum"), build_option(proposed="Labels: any")]
    chosen = [*options, *others[len(options) :]]
    return {"root_cause": "One label only.", "hypothesis": "More labels, more totals.", "options": chosen, **fields}


def find_reasons(data: Any, context: AnalysisContext = CONTEXT) -> list[str]:
    analysis = review_answer(data, context)
    assert analysis.analysis is None
    return list(analysis.reasons)


def test_answer_has_a_root_cause_a_hypothesis_and_three_options() -> None:
    analysis = review_answer(build_answer(), CONTEXT).analysis
    assert analysis is not None
    assert (analysis.root_cause, analysis.hypothesis.theory) == ("One label only.", "More labels, more totals.")
    assert [option.proposed for option in analysis.options] == ["Labels: Total, Sum", "Labels: Sum", "Labels: any"]


def test_hypothesis_may_be_an_object() -> None:
    claim = {"theory": "t", "observation": "o", "mechanism": "m", "prediction": ["a", "b"]}
    analysis = review_answer(build_answer(hypothesis=claim), CONTEXT).analysis
    assert analysis is not None
    assert analysis.hypothesis.prediction == ("a", "b")
    reason = "hypothesis: expected cases of this workload in its prediction, found 'z'"
    assert find_reasons(build_answer(hypothesis={"theory": "t", "prediction": ["z"]})) == [reason]


@pytest.mark.parametrize(
    ("written", "expected"), [("H", "high"), ("Medium", "medium"), (" low ", "low"), (OptionConfidence.HIGH, "high")]
)
def test_confidence_is_parsed_by_its_first_letter(written: str, expected: str) -> None:
    text = written.value if isinstance(written, OptionConfidence) else written
    assert EditOption.model_validate(build_option(confidence=text)).confidence.value == expected


OPTION = "option 1 (More labels): "


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"mechanism": ""}, "expected a mechanism (why the edit changes what comes out), found ''"),
        ({"mechanism": "it works better"}, "expected a mechanism (why the edit changes what comes out), found 'it works better'"),
        ({"name": "More labels", "mechanism": " more Labels "}, "expected a mechanism (why the edit changes what comes out), found 'more Labels'"),
        ({"mechanism": "Labels: Total, Sum, and Net", "proposed": "Labels: Total, Sum, and Net\n"}, "expected a mechanism (why the edit changes what comes out), found 'Labels: Total, Sum, and Net'"),
        ({"improves": []}, "expected the cases that it improves, found none"),
        ({"improves": ["z"]}, "expected cases of this workload, found 'z'"),
        ({"regresses": ["y"]}, "expected cases of this workload, found 'y'"),
        ({"risk": " "}, "expected a risk, found none"),
        ({"file": "run.py"}, "expected one of prompt.md as the file, found 'run.py'"),
        ({"proposed": "Labels: Total"}, "expected a proposed text that differs from the current one, found the same"),
        ({"current": "Labels: Sum"}, "expected the current text once in prompt.md, found none: 'Labels: Sum'"),
        ({"current": "Say nothing else.", "section": "Nowhere"}, "expected the current text once in prompt.md, found it 2 times: 'Say nothing else.'"),
    ],
)  # fmt: skip
def test_flawed_option_is_rejected_with_the_reason(fields: dict[str, Any], reason: str) -> None:
    assert find_reasons(build_answer(build_option(**fields))) == [OPTION + reason]


def test_options_with_the_same_edit_are_rejected() -> None:
    assert find_reasons(build_answer(build_option(), build_option())) == [
        "option 2 (More labels): expected an edit of its own, found one from above"
    ]


def test_tried_edit_is_accepted_only_if_other_cases_fail() -> None:
    tried = TriedEdit(edit=EditOption.model_validate(build_option()).edit, failing=frozenset("ab"))
    same = CONTEXT.model_copy(update={"tried": (tried,)})
    reason = "expected an edit that was not tried when the same cases failed, found one that was"
    assert find_reasons(build_answer(), same) == [OPTION + reason]
    other = same.model_copy(update={"failing": frozenset("a")})
    assert review_answer(build_answer(), other).analysis is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (build_answer() | {"options": [build_option()]}, "expected exactly 3 options, found 1"),
        (build_answer() | {"options": [build_option()] * 4}, "expected exactly 3 options, found 4"),
        (build_answer() | {"root_cause": ""}, "root_cause: String should have at least 1 character, found ''"),
        (build_answer(build_option(confidence="certain")), "options.0.confidence: Input should be 'high', 'medium' or 'low', found 'certain'"),
        ({"root_cause": "x", "options": []}, "hypothesis: Field required, found none"),
    ],
)  # fmt: skip
def test_malformed_answer_is_rejected_with_the_reason(data: Any, reason: str) -> None:
    assert reason in find_reasons(data)


def test_answer_that_is_no_object_is_rejected() -> None:
    (reason,) = find_reasons("I edited the prompt.")
    assert reason.startswith("the answer: Input should be a valid dictionary")


def test_sound_answer_is_accepted() -> None:
    assert review_answer(build_answer(), CONTEXT) == (Analysis.model_validate(build_answer()), ())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, PROMPT.replace("Labels: Total", "Labels: Total, Sum")),
        ({"section": "somewhere else"}, PROMPT.replace("Labels: Total", "Labels: Total, Sum")),
        ({"current": "Say nothing else.", "section": "## Total", "proposed": "x"}, "x".join(PROMPT.rsplit("Say nothing else.", 1))),
        ({"current": "Say nothing else.", "section": "Date", "proposed": "x"}, PROMPT.replace("Say nothing else.", "x", 1)),
        ({"current": "", "section": "Date", "proposed": "New.\n\n"}, PROMPT.replace("## Total", "New.\n\n## Total")),
        ({"current": "", "section": "Total", "proposed": "New.\n"}, PROMPT + "New.\n"),
        ({"current": "", "section": "", "proposed": "New.\n"}, PROMPT + "New.\n"),
    ],
)  # fmt: skip
def test_edit_replaces_one_place_in_its_section(fields: dict[str, Any], expected: str) -> None:
    assert apply_edit(PROMPT, EditOption.model_validate(build_option(**fields))) == expected
