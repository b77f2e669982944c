"""Check whether the tools that criteria need are installed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from pytest_loop.inference.command_lines import COVERAGE_PLUGIN, list_requirements
from pytest_loop.inference.inferred_criteria import TESTS_PASS
from pytest_loop.inference.project_files import Project, join_folder
from pytest_loop.inference.proposal import Criterion
from pytest_loop.inference.shell_script import Step, needs_shell, split_steps

# Finds a program by its name, a module by `python -m NAME`, a plugin by its distribution; None if it is absent.
Find = Callable[[str], str | None]
_MODULE = "python -m "


def find_installed(name: str) -> str | None:
    """Find a program, module or plugin in the environment of this process."""
    if name == COVERAGE_PLUGIN:
        name = f"{_MODULE}pytest_cov"
    if not name.startswith(_MODULE):
        return shutil.which(name)
    try:  # only the top package: finding a submodule would import it
        return name if find_spec(name.removeprefix(_MODULE).partition(".")[0]) else None
    except ValueError:
        return None


def mark_missing_tool(criterion: Criterion, project: Project, find: Find) -> Criterion:
    """Return the criterion with the first tool that its command needs and that is absent.

    Tests that pytest collects need only its plugins. Without tox or nox, pytest runs the project's tests directly.
    """
    is_collected = criterion.is_project_tests or (isinstance(criterion.check, dict) and "tests" in criterion.check)
    required = (
        name
        for step in split_steps(criterion.command)
        for name in list_requirements(step.command)
        if not _is_in_project(name, step, project) and (name == COVERAGE_PLUGIN or not is_collected)
    )
    missing = next((name for name in required if find(name) is None), "")
    runner = missing.removeprefix(_MODULE)
    can_run_tests = bool(project.find_python_tests()) and not needs_shell(criterion.command)
    if runner in ("tox", "nox") and criterion.id == TESTS_PASS and can_run_tests:
        description = f"the tests pass (`pytest`, for {runner} is not here)"
        return replace(criterion, description=description, command="pytest", check=None)
    return replace(criterion, missing_tool=missing)


def _is_in_project(name: str, step: Step, project: Project) -> bool:
    """Return whether a requirement is a script or a module of the project."""
    if name.startswith(_MODULE):
        top = name.removeprefix(_MODULE).partition(".")[0]
        places = (join_folder(folder, top) for folder in (step.folder, join_folder(step.folder, "src")))
        return any(path == f"{place}.py" or path.startswith(f"{place}/") for place in places for path in project.files)
    return "/" in name and join_folder(step.folder, name.removeprefix("./")) in project.files
