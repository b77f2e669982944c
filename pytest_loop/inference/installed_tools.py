"""Whether what a criterion needs is installed here."""

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
from pytest_loop.inference.tool_purposes import split_names

# Finds a program by its name, a module by `python -m NAME`, a plugin by what installs it; None where it is not here.
Find = Callable[[str], str | None]
_MODULE = "python -m "
# What runs the same tests in environments of its own.
_RUNNERS = split_names("tox nox")


def find_installed(name: str) -> str | None:
    """Find something in the environment that pytest runs in."""
    if name.startswith(_MODULE):
        return name if _is_importable(name.removeprefix(_MODULE)) else None
    if name == COVERAGE_PLUGIN:
        return name if _is_importable("pytest_cov") else None
    return shutil.which(name)


def _is_importable(name: str) -> bool:
    """Whether there is a module; of one in a package only the package is looked for, so that nothing is imported."""
    try:
        return find_spec(name.partition(".")[0]) is not None
    except ValueError:
        return False


def mark_missing_tool(one: Criterion, project: Project, find: Find) -> Criterion:
    """The criterion with what its command would need and is not here, if anything; pytest itself runs tests here.

    It also runs those of a project whose tox or nox is not here: a run that can never pass would help nobody.
    """
    is_run_here = one.is_project_tests or (isinstance(one.check, dict) and "tests" in one.check)
    wanted = (
        name
        for step in split_steps(one.command)
        for name in list_requirements(step.command)
        if not _is_ours(name, step, project) and (name == COVERAGE_PLUGIN or not is_run_here)
    )
    missing = next((name for name in wanted if find(name) is None), "")
    runner = missing.removeprefix(_MODULE)
    if runner in _RUNNERS and one.id == TESTS_PASS and project.find_python_tests() and not needs_shell(one.command):
        return replace(
            one, description=f"the tests pass (`pytest`, for {runner} is not here)", command="pytest", check=None
        )
    return replace(one, missing_tool=missing)


def _is_ours(name: str, step: Step, project: Project) -> bool:
    """Whether something is a script or a module of the project."""
    if name.startswith(_MODULE):
        top = name.removeprefix(_MODULE).partition(".")[0]
        places = (join_folder(folder, top) for folder in (step.folder, join_folder(step.folder, "src")))
        return any(path == f"{place}.py" or path.startswith(f"{place}/") for place in places for path in project.files)
    return "/" in name and join_folder(step.folder, name.removeprefix("./")) in project.files
