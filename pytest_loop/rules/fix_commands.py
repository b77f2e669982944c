"""Commands that mend what a rule complains about: those that its author wrote down, and those of known tools."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from pytest_loop.core.model.rules import Remedy
from pytest_loop.rules.checks.command_checks import Command, split_command
from pytest_loop.rules.rule_schema import FixCommand


class Fixer(NamedTuple):
    """How a tool that complains becomes one that mends: the words that it is asked by, those to leave out, new ones."""

    asked: tuple[str, ...]
    without: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


FIXERS = (
    Fixer(("ruff", "check"), ("--diff", "--no-fix"), ("--fix",)),
    Fixer(("ruff", "format"), ("--check", "--diff")),
    Fixer(("black",), ("--check", "--diff")),
    Fixer(("isort",), ("--check", "--check-only", "-c", "--diff")),
    Fixer(("pyupgrade",)),
    Fixer(("autoflake",), ("--check", "-c", "--check-diff", "-cd"), ("--in-place",)),
    Fixer(("autopep8",), ("--diff", "-d", "--exit-code"), ("--in-place",)),
    Fixer(("docformatter",), ("--check", "-c", "--diff"), ("--in-place",)),
    Fixer(("prettier",), ("--check", "-c", "--list-different", "-l"), ("--write",)),
    Fixer(("eslint",), ("--no-fix",), ("--fix",)),
    Fixer(("stylelint",), (), ("--fix",)),
    Fixer(("markdownlint",), (), ("--fix",)),
    Fixer(("cargo", "fmt"), ("--check", "--", "-l")),
    Fixer(("gofmt",), ("-l", "-d"), ("-w",)),
    Fixer(("shfmt",), ("-d", "-l"), ("-w",)),
    Fixer(("taplo", "fmt"), ("--check",)),
    Fixer(("terraform", "fmt"), ("-check", "-diff")),
)
# What may stand before the name of a tool.
_STARTERS = (
    (),
    ("python", "-m"),
    ("python3", "-m"),
    ("npx",),
    ("npx", "--yes"),
    ("uv", "run"),
    ("uvx",),
    ("poetry", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("pipenv", "run"),
)


def find_fix_command(fix: str | FixCommand | None, check: Any, folder: str) -> Remedy | None:
    """The command for a rule with this advice and this check; None where nobody knows one."""
    if isinstance(fix, FixCommand):
        return Remedy(command=fix.command, shell=fix.shell, folder=folder)
    if isinstance(check, Command) and not check.shell and check.expect_exit == 0 and not check.expect_output:
        mending = _mending(split_command(check.command))
        return Remedy(command=shlex.join(mending), folder=folder) if mending else None
    return None


def _mending(asked: list[str]) -> list[str]:
    for starter in _STARTERS:
        if tuple(asked[: len(starter)]) != starter:
            continue
        for fixer in FIXERS:
            end = len(starter) + len(fixer.asked)
            if tuple(asked[len(starter) : end]) == fixer.asked:
                rest = [word for word in asked[end:] if word not in fixer.without and word not in fixer.added]
                return [*asked[:end], *fixer.added, *rest]
    return []
