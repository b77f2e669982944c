"""The tables of docs/tasks.md are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import Proposal
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import ParsedTask, Route, parse_task

PAGE = (Path(__file__).parents[2] / "docs/tasks.md").read_text(encoding="utf-8")
FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n",
    ".github/workflows/ci.yml": "jobs: {t: {steps: [{run: pytest}, {run: ruff check .}, {run: mypy .}]}}",
    "lib/shop.py": "",
    "tests/test_shop.py": "",
}


def read_rows(head: str) -> list[tuple[str, str]]:
    """Return the first two columns of the table below this head."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    rows = (re.split(r"\s*\|\s*", line.strip("| ")) for line in table.splitlines()[2:])
    return [(row[0], row[1]) for row in rows]


def infer(task: str) -> Proposal:
    result = infer_criteria(parse_task(task), Project.from_texts(FILES), lambda name: name)
    assert isinstance(result, Proposal), str(result)
    return result


@pytest.mark.parametrize(("task", "judges"), read_rows("you say | what has to pass"))
def test_every_phrase_of_the_page_is_judged_as_it_says(task: str, judges: str) -> None:
    commands = re.findall(r"`([^`]+)`", judges.partition(": ")[0])
    assert [criterion.command for criterion in infer(task).criteria] == commands


def get_effect(parsed: ParsedTask) -> object:
    effects = (parsed.iteration_limit, parsed.time_limit, parsed.alias, parsed.skips_gates, parsed.route)
    return next((effect for effect in effects if effect and effect is not Route.SESSION), None)


def test_every_word_for_the_run_does_what_the_page_says() -> None:
    rows = [words for words, _ in read_rows("you say | what it does")]
    texts = [f"{words} fix lint" if words.endswith(":") else f"fix lint, {words}" for words in rows]
    assert [get_effect(parse_task(text)) for text in texts] == [3, 1200, Route.BACKGROUND, "my-fixes", True, None]
    assert {parse_task(text).request for text in texts} == {"fix lint", "fix lint, without asking"}


def test_the_page_quotes_the_limit_on_files() -> None:
    from pytest_loop.inference.project_files import MAX_FILES

    assert f"the first {MAX_FILES:,} files" in PAGE
