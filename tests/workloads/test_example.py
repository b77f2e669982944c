"""The example workload: its results, and the answers of its composer."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.workload.analysis import AnalysisContext, apply_edit, review_answer
from pytest_loop.workloads.cases import load_workload
from tests.conftest import WORKERS_IF_THOROUGH

EXAMPLE = Path(__file__).parents[2] / "examples" / "workload"


@pytest.fixture
def example(pytester: pytest.Pytester) -> Path:
    """A copy of the example that can be edited."""
    ignored = shutil.ignore_patterns("__pycache__", "out")
    return Path(shutil.copytree(EXAMPLE, pytester.path / "workload", ignore=ignored))


@WORKERS_IF_THOROUGH
@pytest.mark.usefixtures("example")
def test_twelve_of_twenty_cases_pass(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = pytester.runpytest(*workers)
    result.assert_outcomes(passed=12, failed=8)
    result.stdout.fnmatch_lines(
        ["FAILED workload/loop.manifest.yaml::cases/museum.txt - date: Blocking: expected 2024*"]
    )


def load_analyses() -> list[Any]:
    spec = importlib.util.spec_from_file_location("scripted_composer", EXAMPLE / "scripted_composer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.ANALYSES)


def test_every_answer_of_the_composer_is_valid_after_the_edits_before(example: Path) -> None:
    workload = load_workload(example / "loop.manifest.yaml", example)
    text = (example / "prompt.md").read_text()
    for data in load_analyses():
        context = AnalysisContext(files={"prompt.md": text}, cases=frozenset(case.id for case in workload.cases))
        analysis = review_answer(data, context).analysis
        assert analysis is not None
        text = apply_edit(text, analysis.options[0])
