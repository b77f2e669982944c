from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.workload.analysis import (
    Analysis,
    AnalysisContext,
    Confidence,
    Option,
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
GROUND = AnalysisContext(files={"prompt.md": PROMPT}, cases=frozenset("abc"), failing=frozenset("ab"))


def option(**fields: Any) -> dict[str, Any]:
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


def answer(*options: dict[str, Any], **fields: Any) -> dict[str, Any]:
    others = [option(), option(proposed="Labels: Sum"), option(proposed="Labels: any")]
    chosen = [*options, *others[len(options) :]]
    return {"root_cause": "One label only.", "hypothesis": "More labels, more totals.", "options": chosen, **fields}


def reasons(data: Any, ground: AnalysisContext = GROUND) -> list[str]:
    found = review_answer(data, ground)
    assert found.analysis is None
    return list(found.reasons)


def test_an_answer_has_a_root_cause_a_hypothesis_and_three_options_of_which_the_first_is_recommended() -> None:
    found = review_answer(answer(), GROUND).analysis
    assert found is not None
    assert (found.root_cause, found.hypothesis.theory) == ("One label only.", "More labels, more totals.")
    assert [one.proposed for one in found.options] == ["Labels: Total, Sum", "Labels: Sum", "Labels: any"]


def test_a_hypothesis_may_say_more_than_a_sentence() -> None:
    claim = {"theory": "t", "observation": "o", "mechanism": "m", "prediction": ["a", "b"]}
    found = review_answer(answer(hypothesis=claim), GROUND).analysis
    assert found is not None
    assert found.hypothesis.prediction == ("a", "b")
    said = "hypothesis: expected cases of this workload in its prediction, found 'z'"
    assert reasons(answer(hypothesis={"theory": "t", "prediction": ["z"]})) == [said]


@pytest.mark.parametrize(
    ("written", "meant"), [("H", "high"), ("Medium", "medium"), (" low ", "low"), (Confidence.HIGH, "high")]
)
def test_confidence_is_understood_by_its_first_letter(written: str, meant: str) -> None:
    text = written.value if isinstance(written, Confidence) else written
    assert Option.model_validate(option(confidence=text)).confidence.value == meant


OPTION = "option 1 (More labels): "


@pytest.mark.parametrize(
    ("fields", "said"),
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
def test_an_option_with_a_flaw_is_refused_with_the_reason(fields: dict[str, Any], said: str) -> None:
    assert reasons(answer(option(**fields))) == [OPTION + said]


def test_options_that_are_the_same_edit_are_refused() -> None:
    assert reasons(answer(option(), option())) == [
        "option 2 (More labels): expected an edit of its own, found one from above"
    ]


def test_an_edit_that_was_tried_comes_back_only_with_new_evidence() -> None:
    tried = TriedEdit(edit=Option.model_validate(option()).edit, failing=frozenset("ab"))
    same = GROUND.model_copy(update={"tried": (tried,)})
    said = "expected an edit that was not tried when the same cases failed, found one that was"
    assert reasons(answer(), same) == [OPTION + said]
    other = same.model_copy(update={"failing": frozenset("a")})
    assert review_answer(answer(), other).analysis is not None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (answer() | {"options": [option()]}, "expected exactly 3 options, found 1"),
        (answer() | {"options": [option()] * 4}, "expected exactly 3 options, found 4"),
        (answer() | {"root_cause": ""}, "root_cause: String should have at least 1 character, found ''"),
        (answer(option(confidence="certain")), "options.0.confidence: Input should be 'high', 'medium' or 'low', found 'certain'"),
        ({"root_cause": "x", "options": []}, "hypothesis: Field required, found none"),
    ],
)  # fmt: skip
def test_an_answer_of_another_form_is_refused_with_the_reason(data: Any, said: str) -> None:
    assert said in reasons(data)


def test_an_answer_that_is_no_object_is_refused() -> None:
    (said,) = reasons("I edited the prompt.")
    assert said.startswith("the answer: Input should be a valid dictionary")


def test_a_flawed_answer_is_sent_back_once() -> None:
    bad = answer(option(mechanism=""))
    assert [review_answer(bad, GROUND, times).is_final for times in (1, 2)] == [False, True]
    assert review_answer(answer(), GROUND, 2) == (Analysis.model_validate(answer()), (), False)


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
def test_an_edit_replaces_one_place_and_its_section_tells_which(fields: dict[str, Any], expected: str) -> None:
    assert apply_edit(PROMPT, Option.model_validate(option(**fields))) == expected
