from __future__ import annotations

import pytest

from pytest_loop.workloads.placeholders import ALL, complaint, filled, named

VALUES = {name: f"<{name}>" for name in ALL}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing", "nothing"),
        ("{case}", "<case>"),
        ("{case_dir}/{case_stem}.json", "<case_dir>/<case_stem>.json"),
        ("{output} {expected} {case_name}", "<output> <expected> <case_name>"),
        ("awk '{{print}}' {case}", "awk '{print}' <case>"),
        ('jq "{a: .b}" {case}', 'jq "{a: .b}" <case>'),
    ],
)
def test_placeholders_are_replaced_and_other_braces_stay(text: str, expected: str) -> None:
    assert filled(text, VALUES) == expected


def test_a_placeholder_without_a_value_is_named() -> None:
    with pytest.raises(KeyError, match="expected"):
        filled("{expected}", {"case": "a"})


def test_each_placeholder_is_named_once() -> None:
    assert named("{case} {x} {case} {{y}}") == ("case", "x")


def test_a_placeholder_that_nobody_knows_is_named_with_those_that_are_known() -> None:
    assert complaint("{case}", "runCommand") is None
    assert complaint("{x}", "outputPath", ("case",)) == (
        "expected {case} in `outputPath`, found {x} (for the braces themselves write {{x}})"
    )
    assert complaint("{case}", "buildCommand", ()) == "expected no placeholder in `buildCommand`, found {case}"
