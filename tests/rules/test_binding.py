"""The plan of a session, bound from its items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.rules.binding import Binding

RULES = """
    artifact: doc.md
    rules:
      - {id: a.title, description: Has a title, check: {contains: Title}}
      - {id: a.shape, description: Has a shape, check: {json_schema: nowhere.json}}
      - {id: a.form, description: Has a form, check: {json_schema: form.json}}
"""


def test_plan_of_a_collection_names_obstacles_and_the_files_that_judge(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path]
) -> None:
    write_rule_file(RULES)
    (pytester.path / "form.json").write_text("{}")
    items, _ = pytester.inline_genitems()
    plan = Binding(items[0].session).plan
    assert plan.obstacles == {"it.rules.yaml::a.shape": "there is no schema nowhere.json"}
    assert plan.judges == ("form.json",)
