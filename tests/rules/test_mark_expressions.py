from __future__ import annotations

import pytest

from pytest_loop.rules.mark_expressions import MarkExpression

MARKS = [pytest.mark.usefixtures("x").mark, pytest.mark.loop_rule("a", severity="warn").mark]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("usefixtures", True),
        ("fast", False),
        ("not fast", True),
        ("usefixtures and not loop_rule", False),
        ("fast or loop_rule(severity='warn')", True),
        ("loop_rule(severity='fail')", False),
        ("(usefixtures and loop_rule) or fast", True),
        ("True", True),
        ("None", False),
    ],
)
def test_an_expression_matches_marks(text: str, expected: bool) -> None:
    assert MarkExpression(text).matches(MARKS) is expected
