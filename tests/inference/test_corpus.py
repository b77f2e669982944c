"""Infer criteria for small projects of every kind; the table is `corpus.yaml`."""

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


def infer_row(row: dict[str, Any], root: Path, task: str = "") -> Proposal | Refusal:
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


def test_the_corpus_is_large_and_has_distinct_names() -> None:
    assert len(CORPUS) >= 45
    assert len({row["name"] for row in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["name"])
def test_a_task_is_infer_row(row: dict[str, Any], tmp_path: Path) -> None:
    result = infer_row(row, tmp_path)
    assert isinstance(result, Proposal), str(result)
    text = render_proposal(result)
    assert [criterion.command for criterion in result.criteria if criterion.command] == row["commands"], text
    assert result.confidence.value == row["confidence"], text
    assert result.goal.value == row["class"], text
    project_tests = [criterion for criterion in result.criteria if criterion.is_project_tests or criterion.targets]
    assert [list(criterion.targets) for criterion in project_tests] == (
        [row["own_tests"]] if "own_tests" in row else []
    ), text
    assert [criterion.missing_tool for criterion in result.criteria if criterion.missing_tool] == (
        [row["lacks"]] if "lacks" in row else []
    ), text
    assert len(result.rewordings) == (3 if row["confidence"] == "low" else 0), text
    for reworded in result.rewordings:
        repeated = infer_row(row, tmp_path, reworded)
        assert isinstance(repeated, Proposal), reworded
        assert repeated.confidence is Confidence.HIGH, reworded
    for piece in row.get("rewords", ()):
        assert piece in "\n".join(result.rewordings), text
    for piece in row.get("says", ()):
        assert piece in "\n".join(result.rationale), text
    warnings = "\n".join(result.warnings)
    assert bool(result.warnings) is ("warns" in row), text
    for piece in row.get("warns", ()):
        assert piece in warnings, text


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["name"])
def test_a_proposal_renders_as_rule_file_and_yaml(row: dict[str, Any], tmp_path: Path) -> None:
    result = infer_row(row, tmp_path)
    assert isinstance(result, Proposal)
    rules = build_rules(result)
    assert len(rules) == len([criterion for criterion in result.criteria if not criterion.is_project_tests])
    text = render_rule_file(rules)
    if rules:
        (tmp_path / "inferred.rules.yaml").write_text(text, encoding="utf-8")
        loaded = load_rule_file(tmp_path / "inferred.rules.yaml", tmp_path)
        assert [loaded_rule.rule.id for loaded_rule in loaded.rules] == [rule.entry["id"] for rule in rules]
        assert all(loaded_rule.rule.is_blocking for loaded_rule in loaded.rules)
    else:
        assert text == ""
    content = yaml.safe_load(render_proposal(result))["proposed_completion"]
    assert content["confidence"] == row["confidence"]
    grouped = [f"({command})" if command.startswith("cd ") else command for command in row["commands"]]
    assert content["verification_command"] == (" && ".join(grouped) if len(grouped) > 1 else "".join(row["commands"]))
    assert content["needs_human_confirmation"] or row["confidence"] != "low"
    assert content["rationale"]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])
def test_a_vague_task_is_refused_with_rewordings(row: dict[str, Any], tmp_path: Path) -> None:
    result = infer_row(row, tmp_path)
    assert isinstance(result, Refusal)
    for piece in row["refused"]:
        assert piece in str(result)
    assert len(result.rewordings) == 3 if result.missing else len(result.rewordings) <= 1
    for reworded in result.rewordings:
        repeated = infer_row(row, tmp_path, reworded)
        assert isinstance(repeated, Proposal), reworded
        assert repeated.confidence is Confidence.HIGH, reworded
