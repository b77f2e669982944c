"""Fix commands: declared in a rule file, or derived from a known tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import Remedy
from pytest_loop.errors import RuleFileError
from pytest_loop.rules.rule_files import load_rule_file

Write = Callable[..., Path]


def find_remedy(write_rule_file: Write, fields: str, name: str = "it.rules.yaml") -> Remedy | None:
    path = write_rule_file(f"rules:\n  - {{id: a.one, description: One, {fields}}}\n", name)
    root = path.parents[len(Path(name).parts) - 1]
    return load_rule_file(path, root).rules[0].rule.remedy


@pytest.mark.parametrize(
    ("command", "fix"),
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
def test_a_check_with_a_known_tool_has_a_fix_command(write_rule_file: Write, command: str, fix: str | None) -> None:
    remedy = find_remedy(write_rule_file, f'check: {{command: "{command}"}}')
    assert (remedy.command if remedy else None) == fix


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
def test_other_checks_with_a_known_tool_have_no_fix_command(write_rule_file: Write, check: str) -> None:
    assert find_remedy(write_rule_file, f"check: {check}") is None


def test_a_declared_fix_command_wins_and_runs_in_the_folder_of_the_rule_file(write_rule_file: Write) -> None:
    remedy = find_remedy(
        write_rule_file, "check: {command: ruff check .}, fix: {command: make tidy}", "rules/it.rules.yaml"
    )
    assert remedy == Remedy(command="make tidy", folder="rules")


def test_advice_as_text_is_not_a_fix_command(write_rule_file: Write) -> None:
    assert find_remedy(write_rule_file, "check: {command: make}, fix: Run make") is None


def test_a_fix_command_with_shell_operators_needs_shell_true(write_rule_file: Write) -> None:
    piped = "check: {command: make}, fix: {command: 'cat a | tee b'%s}"
    remedy = find_remedy(write_rule_file, piped % ", shell: true")
    assert remedy == Remedy(command="cat a | tee b", shell=True, folder=".")
    with pytest.raises(RuleFileError, match="found the shell operator '\\|': add `shell: true`"):
        find_remedy(write_rule_file, piped % "")
