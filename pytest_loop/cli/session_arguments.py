"""Build the pytest arguments of sessions from the settings of a run."""

from __future__ import annotations

import pytest

from pytest_loop.rules.sources import TEMPLATES, list_templates
from pytest_loop.settings.command_line import build_session_arguments
from pytest_loop.settings.settings import Settings


def build_suite_arguments(settings: Settings) -> tuple[str, ...]:
    """Return the arguments of a session of all tests of the project."""
    arguments = build_session_arguments(settings.arguments, settings.paths)
    return (*arguments, *settings.location_arguments, "--continue-on-collection-errors", *settings.suite_paths)


def build_judging_arguments(settings: Settings, *inferred: str) -> tuple[str, ...]:
    """Return the arguments of a session that judges: with rule files, if there are any, in place of the user's paths.

    `inferred` are the paths of inferred rule files; these already include the rules of `--loop-template`.
    """
    judging = settings.judging
    for path in judging.rules:
        if not (settings.folder / path.partition("::")[0]).exists():
            raise pytest.UsageError(f"--loop-rules: expected a file or folder, found {path!r}")
    rule_files = [*judging.rules, *inferred]
    check_template(judging.template)
    if judging.template and not inferred:
        rule_files.append(str(TEMPLATES / f"{judging.template}.rules.yaml"))
    arguments = build_session_arguments(settings.arguments, settings.paths if rule_files else ())
    return (*arguments, *settings.location_arguments, "--continue-on-collection-errors", *rule_files)


def check_template(name: str) -> None:
    """Raise `UsageError` if there is no template of this name."""
    if name and name not in list_templates():
        raise pytest.UsageError(f"--loop-template: expected one of {', '.join(list_templates())}, found {name!r}")
