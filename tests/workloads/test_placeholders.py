"""Placeholders of manifests: replacing, finding and checking them."""

from __future__ import annotations

import re

import pytest

from pytest_loop.workloads.manifest import PLACEHOLDERS, check_placeholders, fill_placeholders, find_placeholders

VALUES = {name: f"<{name}>" for name in PLACEHOLDERS}


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
    assert fill_placeholders(text, VALUES) == expected


def test_missing_value_is_named() -> None:
    with pytest.raises(KeyError, match="expected"):
        fill_placeholders("{expected}", {"case": "a"})


def test_placeholders_are_found_once() -> None:
    assert find_placeholders("{case} {x} {case} {{y}}") == ("case", "x")


@pytest.mark.parametrize(
    ("text", "field", "allowed", "problem"),
    [
        (
            "{x}",
            "outputPath",
            ("case",),
            "expected {case} in `outputPath`, found {x} (for the braces themselves write {{x}})",
        ),
        ("{case}", "buildCommand", (), "expected no placeholder in `buildCommand`, found {case}"),
    ],
)
def test_unknown_placeholder_is_named_with_the_allowed_ones(
    text: str, field: str, allowed: tuple[str, ...], problem: str
) -> None:
    assert check_placeholders("{case}", "runCommand") == "{case}"
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        check_placeholders(text, field, allowed)
