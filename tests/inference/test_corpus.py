"""What is inferred for small projects of every kind: the table is `corpus.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_loop.inference.command_candidate import Confidence
from pytest_loop.inference.project_files import read_project
from pytest_loop.inference.proposal import Proposal, build_rules, render_proposal, render_rule_file
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.inference.task_refusal import Refusal
from pytest_loop.rules.rule_files import load_rule_file

CORPUS = yaml.safe_load(Path(__file__).with_name("corpus.yaml").read_text(encoding="utf-8"))
ACCEPTED = [row for row in CORPUS if "refused" not in row]
REFUSED = [row for row in CORPUS if "refused" in row]


def inferred(row: dict[str, Any], root: Path, task: str = "") -> Proposal | Refusal:
    for name, text in row["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    installed = row.get("installed")
    return infer_criteria(
        parse_task(task or row["task"]),
        read_project(root),
        lambda name: name if installed is None or name in installed else None,
    )


def test_the_corpus_is_large_and_its_names_are_its_own() -> None:
    assert len(CORPUS) >= 45
    assert len({row["name"] for row in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["name"])
def test_what_is_inferred(row: dict[str, Any], tmp_path: Path) -> None:
    found = inferred(row, tmp_path)
    assert isinstance(found, Proposal), str(found)
    said = render_proposal(found)
    assert [one.command for one in found.criteria if one.command] == row["commands"], said
    assert found.confidence.value == row["confidence"], said
    assert found.goal.value == row["class"], said
    own = [one for one in found.criteria if one.is_project_tests or one.targets]
    assert [list(one.targets) for one in own] == ([row["own_tests"]] if "own_tests" in row else []), said
    assert [one.missing_tool for one in found.criteria if one.missing_tool] == (
        [row["lacks"]] if "lacks" in row else []
    ), said
    assert len(found.rewordings) == (3 if row["confidence"] == "low" else 0), said
    for way in found.rewordings:
        again = inferred(row, tmp_path, way)
        assert isinstance(again, Proposal), way
        assert again.confidence is Confidence.HIGH, way
    for piece in row.get("rewords", ()):
        assert piece in "\n".join(found.rewordings), said
    for piece in row.get("says", ()):
        assert piece in "\n".join(found.rationale), said
    warnings = "\n".join(found.warnings)
    assert bool(found.warnings) is ("warns" in row), said
    for piece in row.get("warns", ()):
        assert piece in warnings, said


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["name"])
def test_what_is_inferred_is_a_rule_file_and_a_proposal_in_yaml(row: dict[str, Any], tmp_path: Path) -> None:
    found = inferred(row, tmp_path)
    assert isinstance(found, Proposal)
    made = build_rules(found)
    assert len(made) == len([one for one in found.criteria if not one.is_project_tests])
    text = render_rule_file(made)
    if made:
        (tmp_path / "inferred.rules.yaml").write_text(text, encoding="utf-8")
        loaded = load_rule_file(tmp_path / "inferred.rules.yaml", tmp_path)
        assert [one.rule.id for one in loaded.rules] == [one.entry["id"] for one in made]
        assert all(one.rule.is_blocking for one in loaded.rules)
    else:
        assert text == ""
    told = yaml.safe_load(render_proposal(found))["proposed_completion"]
    assert told["confidence"] == row["confidence"]
    alone = [f"({one})" if one.startswith("cd ") else one for one in row["commands"]]
    assert told["verification_command"] == (" && ".join(alone) if len(alone) > 1 else "".join(row["commands"]))
    assert told["needs_human_confirmation"] or row["confidence"] != "low"
    assert told["rationale"]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])
def test_what_is_refused(row: dict[str, Any], tmp_path: Path) -> None:
    found = inferred(row, tmp_path)
    assert isinstance(found, Refusal)
    for piece in row["refused"]:
        assert piece in str(found)
    assert len(found.suggest_rewordings) == 3
    for way in found.suggest_rewordings:
        again = inferred(row, tmp_path, way)
        assert isinstance(again, Proposal), way
        assert again.confidence is Confidence.HIGH, way
