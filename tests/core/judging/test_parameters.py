"""Parameters that come from the product may be others than at the start, but not fewer."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.parameters import match_parameters


@pytest.mark.parametrize(
    ("expected", "evidence", "matched"),
    [
        (["t[a]", "t[b]"], {"t[a]": [1], "t[c]": [2]}, {"t[b]": [2]}),
        (["t[a]", "t[b]"], {"t[a0]": [1], "t[c]": [2], "t[a1]": [3]}, {"t[a]": [1, 2, 3], "t[b]": [1, 2, 3]}),
        (["t[a]", "t[b]"], {"t[a]": [1]}, {}),
        (["t[a]", "t[b]"], {}, {}),
        (["t[a]"], {"u[a]": [1]}, {}),
        (["t[a]", "u"], {"t[a]": [1], "t[b]": [2]}, {}),
    ],
)
def test_missing_parameters_get_the_evidence_of_new_ones(
    expected: list[str], evidence: dict[str, list[int]], matched: dict[str, list[int]]
) -> None:
    assert match_parameters(expected, evidence) == evidence | matched
