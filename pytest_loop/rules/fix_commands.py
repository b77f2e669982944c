"""Find the command that fixes a failing rule: declared in the rule file, or derived from a check with a known tool."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from pytest_loop.core.model.rules import Remedy
from pytest_loop.rules.checks.command_checks import Command, split_command
from pytest_loop.rules.rule_schema import FixCommand


class Fixer(NamedTuple):
    """A tool that checks and fixes files: its command, and the flags to remove and to add to make it fix files."""

    command: str
    removed_flags: str = ""
    added_flags: str = ""


# A tool without added flags fixes files unless a flag forbids it.
FIXERS = (
    Fixer("ruff check", "--diff --no-fix", "--fix"),
    Fixer("ruff format", "--check --diff"),
    Fixer("black", "--check --diff"),
    Fixer("isort", "--check --check-only -c --diff"),
    Fixer("pyupgrade"),
    Fixer("autoflake", "--check -c --check-diff -cd", "--in-place"),
    Fixer("autopep8", "--diff -d --exit-code", "--in-place"),
    Fixer("docformatter", "--check -c --diff", "--in-place"),
    Fixer("prettier", "--check -c --list-different -l", "--write"),
    Fixer("eslint", "--no-fix", "--fix"),
    Fixer("stylelint", "", "--fix"),
    Fixer("markdownlint", "", "--fix"),
    Fixer("cargo fmt", "--check -- -l"),
    Fixer("gofmt", "-l -d", "-w"),
    Fixer("shfmt", "-d -l", "-w"),
    Fixer("taplo fmt", "--check"),
    Fixer("terraform fmt", "-check -diff"),
)
LAUNCHERS = (
    "",
    "python -m",
    "python3 -m",
    "npx",
    "npx --yes",
    "uv run",
    "uvx",
    "poetry run",
    "pdm run",
    "hatch run",
    "pipenv run",
)


def find_fix_command(fix: str | FixCommand | None, check: Any, folder: str) -> Remedy | None:
    """Return the command of `fix`, or one derived from a known tool in `check`, to run in `folder`; else None."""
    if isinstance(fix, FixCommand):
        return Remedy(command=fix.command, shell=fix.shell, folder=folder)
    if isinstance(check, Command) and not check.shell and check.expect_exit == 0 and not check.expect_output:
        command = _convert_to_fix(split_command(check.command))
        return Remedy(command=shlex.join(command), folder=folder) if command else None
    return None


def _convert_to_fix(words: list[str]) -> list[str]:
    """Turn a checking command into the fixing one; return an empty list for an unknown tool."""
    for launcher in LAUNCHERS:
        for fixer in FIXERS:
            prefix = [*launcher.split(), *fixer.command.split()]
            if words[: len(prefix)] == prefix:
                dropped = {*fixer.removed_flags.split(), *fixer.added_flags.split()}
                rest = [word for word in words[len(prefix) :] if word not in dropped]
                return [*prefix, *fixer.added_flags.split(), *rest]
    return []
