"""Build the arguments of evaluation sessions from the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.rules.sources import TEMPLATES, list_templates
from pytest_loop.settings.command_line import build_session_arguments
from pytest_loop.settings.settings import Settings


def resolve_artifact(settings: Settings) -> Path | None:
    """Return the path of `--loop-artifact`, None without one; raise `UsageError` if it is outside the project."""
    name = settings.workspace.artifact
    if not name:
        return None
    path = (settings.folder / name).resolve()
    if not path.is_relative_to(settings.root.resolve()):
        raise pytest.UsageError(f"--loop-artifact: expected a path inside {settings.root}, found {name!r}")
    return path


def build_judging_arguments(settings: Settings, *inferred: str) -> tuple[str, ...]:
    """Return the user's pytest arguments for a session; named, template or inferred rules replace the user's paths."""
    judging = settings.judging
    for name in judging.rules:
        if not (settings.folder / name.partition("::")[0]).exists():
            raise pytest.UsageError(f"--loop-rules: expected a file or folder, found {name!r}")
    paths = [*judging.rules, *inferred]
    if judging.template:
        if judging.template not in list_templates():
            names = ", ".join(list_templates())
            raise pytest.UsageError(f"--loop-template: expected one of {names}, found {judging.template!r}")
        paths.append(str(TEMPLATES / f"{judging.template}.rules.yaml"))
    arguments = build_session_arguments(settings.arguments, settings.paths if paths else ())
    return (*arguments, *settings.location_arguments, "--continue-on-collection-errors", *paths)
