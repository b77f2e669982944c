"""Build the arguments of evaluation sessions from the settings."""

from __future__ import annotations

import pytest

from pytest_loop.rules.sources import TEMPLATES, list_templates
from pytest_loop.settings.command_line import build_session_arguments
from pytest_loop.settings.settings import Settings


def build_suite_arguments(settings: Settings) -> tuple[str, ...]:
    """Return the user's pytest arguments for a session of all tests of the project."""
    arguments = build_session_arguments(settings.arguments, settings.paths)
    return (*arguments, *settings.location_arguments, "--continue-on-collection-errors", *settings.suite_paths)


def build_judging_arguments(settings: Settings, *inferred: str) -> tuple[str, ...]:
    """Return the user's pytest arguments for a session, with the files of rules instead of paths if there are any.

    `inferred` are the paths of inferred rule files; these already include the rules of `--loop-template`.
    """
    judging = settings.judging
    for name in judging.rules:
        if not (settings.folder / name.partition("::")[0]).exists():
            raise pytest.UsageError(f"--loop-rules: expected a file or folder, found {name!r}")
    paths = [*judging.rules, *inferred]
    check_template(judging.template)
    if judging.template and not inferred:
        paths.append(str(TEMPLATES / f"{judging.template}.rules.yaml"))
    arguments = build_session_arguments(settings.arguments, settings.paths if paths else ())
    return (*arguments, *settings.location_arguments, "--continue-on-collection-errors", *paths)


def check_template(name: str) -> None:
    """Raise `UsageError` for the name of a template that does not exist."""
    if name and name not in list_templates():
        raise pytest.UsageError(f"--loop-template: expected one of {', '.join(list_templates())}, found {name!r}")
