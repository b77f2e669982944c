"""Commands that mend: of the author, and of tools that are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import Remedy
from pytest_loop.errors import RuleFileError
from pytest_loop.rules.rule_files import load_rule_file

Write = Callable[..., Path]


def remedy(rule_file: Write, rest: str, name: str = "it.rules.yaml") -> Remedy | None:
    path = rule_file(f"rules:\n  - {{id: a.one, description: One, {rest}}}\n", name)
    root = path.parents[len(Path(name).parts) - 1]
    return load_rule_file(path, root).rules[0].rule.remedy


@pytest.mark.parametrize(
    ("command", "mends"),
    [
        ("ruff check .", "ruff check --fix ."),
        ("ruff check --no-fix src tests", "ruff check --fix src tests"),
        ("ruff check --fix .", "ruff check --fix ."),
        ("ruff format --check .", "ruff format ."),
        ("python -m black --check --diff src", "python -m black src"),
        ("isort --check-only .", "isort ."),
        ("pyupgrade --py310-plus shop.py", "pyupgrade --py310-plus shop.py"),
        ("autoflake --check -r .", "autoflake --in-place -r ."),
        ("autopep8 --diff --exit-code -r .", "autopep8 --in-place -r ."),
        ("docformatter -c shop.py", "docformatter --in-place shop.py"),
        ("npx prettier --check '**/*.md'", "npx prettier --write '**/*.md'"),
        ("npx --yes eslint src", "npx --yes eslint --fix src"),
        ("stylelint '*.css'", "stylelint --fix '*.css'"),
        ("markdownlint docs", "markdownlint --fix docs"),
        ("cargo fmt --check", "cargo fmt"),
        ("gofmt -l .", "gofmt -w ."),
        ("shfmt -d run.sh", "shfmt -w run.sh"),
        ("taplo fmt --check", "taplo fmt"),
        ("terraform fmt -check", "terraform fmt"),
        ("uv run ruff format --diff", "uv run ruff format"),
        ("mypy .", None),
        ("ruff", None),
        ("time ruff check .", None),
    ],
)
def test_a_tool_that_complains_can_mend(rule_file: Write, command: str, mends: str | None) -> None:
    found = remedy(rule_file, f'check: {{command: "{command}"}}')
    assert (found.command if found else None) == mends


@pytest.mark.parametrize(
    "check",
    [
        "{command: ruff check . | head, shell: true}",
        "{command: ruff check ., expect_exit: 1}",
        "{command: ruff check ., expect_output: passed}",
        "{not: {command: ruff check .}}",
        "Ruff has nothing to say",
    ],
)
def test_a_tool_is_not_run_where_another_answer_is_wanted(rule_file: Write, check: str) -> None:
    assert remedy(rule_file, f"check: {check}") is None


def test_what_the_author_wrote_comes_first_and_runs_where_the_file_lies(rule_file: Write) -> None:
    found = remedy(rule_file, "check: {command: ruff check .}, fix: {command: make tidy}", "rules/it.rules.yaml")
    assert found == Remedy(command="make tidy", folder="rules")


def test_advice_in_words_is_no_command(rule_file: Write) -> None:
    assert remedy(rule_file, "check: {command: make}, fix: Run make") is None


def test_a_command_for_the_shell_says_so(rule_file: Write) -> None:
    piped = "check: {command: make}, fix: {command: 'cat a | tee b'%s}"
    found = remedy(rule_file, piped % ", shell: true")
    assert found == Remedy(command="cat a | tee b", shell=True, folder=".")
    with pytest.raises(RuleFileError, match="found the shell operator '\\|': add `shell: true`"):
        remedy(rule_file, piped % "")
