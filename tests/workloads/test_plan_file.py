from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.errors import ManifestError
from pytest_loop.workloads.plan_file import read_plan

PLAN: dict[str, Any] = {
    "problem": "5 of 20 receipts have no total.",
    "hypotheses": [
        {"theory": "Dates are anywhere", "priority": "low", "confidence": "high"},
        {
            "theory": "Labels are missing.",
            "observation": "Services say so",
            "mechanism": "each",
            "prediction": ["cases/a.txt"],
            "priority": "high",
        },
    ],
    "focus": ["a.txt"],
    "guards": ["b.txt"],
    "exclusions": [{"case": "c.txt", "reason": "it is empty"}],
    "success": {"minimum": "3 more, no loss", "stretch": "all"},
}


def test_plan_renders_its_hypotheses_by_rank(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    plan = read_plan(tmp_path / "plan.json", tmp_path)
    assert str(plan).splitlines() == [
        "5 of 20 receipts have no total.",
        "1. (high priority, medium confidence) Labels are missing. Services say so. Mechanism: each. Predicted: cases/a.txt.",
        "2. (low priority, high confidence) Dates are anywhere.",
        "Minimum: 3 more, no loss",
        "Stretch: all",
    ]
    assert (plan.focus, plan.guards, plan.exclusions[0].case) == (["a.txt"], ["b.txt"], "c.txt")


def test_plan_in_prose_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("# Plan\n\nLook at labels.\n")
    assert str(read_plan(tmp_path / "plan.md", tmp_path)) == "# Plan\n\nLook at labels."
    with pytest.raises(ManifestError, match=r"^none.md:1: expected a file, found none$"):
        read_plan(tmp_path / "none.md", tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hypothesis": []}, "expected `hypotheses`, found the unknown key `hypothesis`"),
        ({"focus": "a"}, "expected a list for `focus`, found 'a'"),
        ({"hypotheses": [{"priority": "high"}]}, "expected the key `theory`, found none"),
        ({"exclusions": [{"case": "a"}]}, "expected the key `reason`, found none"),
    ],
)
def test_problem_of_a_plan_is_one_line(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(fields))
    with pytest.raises(ManifestError) as caught:
        read_plan(tmp_path / "plan.json", tmp_path)
    assert str(caught.value) == f"plan.json:1: {message}"
