"""Turn commands into criteria: the project's tests, a coverage number, or a command that has to pass."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.command_lines import COVERAGE_PLUGIN, list_requirements, normalize_command
from pytest_loop.inference.coverage_criteria import COVERAGE_ID, CoverageGoal, build_coverage_criterion, replace_plugin
from pytest_loop.inference.data_files import collect_strings, get_mapping
from pytest_loop.inference.project_files import Project, join_folder
from pytest_loop.inference.proposal import Criterion, build_command_check, choose_free_id
from pytest_loop.inference.shell_script import ScriptCommand, needs_shell, split_steps
from pytest_loop.inference.tool_purposes import LANGUAGES, Purpose, split_names

TESTS_PASS = "a.tests.pass"  # noqa: S105 - not a password
_CRITERIA = {
    Purpose.TEST: (TESTS_PASS, "the tests pass"),
    Purpose.COVERAGE: (COVERAGE_ID, "the tests cover enough"),
    Purpose.TYPES: ("a.types.clean", "the type checker has no complaint"),
    Purpose.LINT: ("a.lint.clean", "the linter has no complaint"),
    Purpose.BUILD: ("a.build.passes", "the build passes"),
    Purpose.DOCS: ("a.docs.present", "what is public is documented"),
}
_PYTEST_SETTINGS = {
    "pyproject.toml": ("tool", "pytest", "ini_options"),
    "pytest.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
    "tox.ini": ("pytest",),
}
# Usual places of tests by language.
_TEST_FILES = {
    "python": ("**/test_*.py", "**/*_test.py"),
    "node": ("**/*.test.*", "**/*.spec.*"),
    "go": ("**/*_test.go",),
    "java": ("**/src/test/**/*",),
    "ruby": ("**/*_spec.rb", "**/*_test.rb"),
}


def build_criterion(
    candidate: CommandCandidate, project: Project, goal: CoverageGoal | None = None, agreeing: Sequence[SourceLine] = ()
) -> Criterion:
    """Build the criterion of a command; `agreeing` are other sources of the same command."""
    own_source = () if candidate.layer is Layer.TASK else (candidate.source,)
    sources = tuple(dict.fromkeys((*own_source, *agreeing)))
    if candidate.purpose is Purpose.COVERAGE and goal:
        coverage = build_coverage_criterion(candidate, project, goal)
        if coverage:
            return replace(coverage, sources=sources)
    rule_id, description = _CRITERIA[candidate.purpose]
    command = candidate.command_line
    check: dict[str, Any] | None = build_command_check(command, candidate.purpose)
    targets: tuple[str, ...] = ()
    if candidate.purpose is Purpose.TEST:
        selection = parse_pytest_selection(candidate, find_whole_suite_targets(project))
        if selection is not None:
            targets, marker = selection
            check = {"tests": list(targets)} if targets else {"tests": marker} if marker else None
    return Criterion(rule_id, f"{description} (`{command}`)", command, check, sources, targets)


# -- tests that pytest collects


def find_whole_suite_targets(project: Project) -> tuple[str, ...]:
    """Return the targets that stand for all tests: configured test paths, and the only folder with tests."""
    settings = (get_mapping(project.data.get(path), *section) for path, section in _PYTEST_SETTINGS.items())
    paths = (text for section in settings for text in collect_strings(section.get("testpaths")))
    configured = [word.rstrip("/") for text in paths for word in text.split()]
    roots = {path.partition("/")[0] for path in project.find_python_tests()}
    return (*configured, *(root for root in roots if len(roots) == 1 and not root.endswith(".py")))


def parse_pytest_selection(
    candidate: CommandCandidate, whole_suite: Collection[str]
) -> tuple[tuple[str, ...], str] | None:
    """Return the targets and the mark expression of a pytest call; None if it has to stay a command.

    A call in a folder stays a command, because pytest may have other settings there, and so does a call that demands
    more than passing tests.
    """
    name, *arguments = normalize_command(candidate.command, whole_suite) or ("",)
    is_plain = not (candidate.folder or needs_shell(candidate.command) or "--cov-fail-under" in candidate.command)
    if name != "pytest" or not is_plain:
        return None
    if len(arguments) == 2 and arguments[0] == "-m":
        return (), arguments[1]
    if any(argument.startswith("-") for argument in arguments):
        return None
    return tuple(map(_format_target, arguments)), ""


def _format_target(target: str) -> str:
    """Return a target for the check `tests`; a plain word gets a slash, because it would be read as a mark."""
    return target if "/" in target or "::" in target or target.endswith(".py") else f"{target}/"


def limit_to_named_tests(criterion: Criterion, project: Project, names: Sequence[str]) -> Criterion:
    """Limit the project's tests to files with one of these names, if there are any: `test_uc_1.py` for `UC-1`."""
    keys = [_remove_separators(name) for name in names]
    paths = tuple(path for path in project.find_python_tests() if any(key in _remove_separators(path) for key in keys))
    if not criterion.is_project_tests or not paths:
        return criterion
    command = f"pytest {' '.join(paths)}"
    description = f"the tests of {', '.join(names)} pass (`{command}`)"
    return replace(criterion, description=description, command=command, check={"tests": list(paths)}, targets=paths)


def _remove_separators(text: str) -> str:
    return text.lower().replace("-", "").replace("_", "")


def build_tests_exist_criterion(family: str, sources: tuple[SourceLine, ...]) -> Criterion | None:
    """Build the criterion that tests exist; None if the usual places of tests in the language are unknown."""
    checks: list[dict[str, Any]] = [{"files": {"exist": glob}} for glob in _TEST_FILES.get(family, ())]
    if not checks:
        return None
    check = {"any": checks} if len(checks) > 1 else checks[0]
    return Criterion("a.tests.exist", "tests for the new code exist", "", check, sources)


# -- all criteria


def build_change_criterion() -> Criterion:
    """Build the criterion that git sees a change, for a project in which nothing is verified."""
    command = "git diff --quiet HEAD"
    check = {"command": command, "expect_exit": 1}
    return Criterion("a.change.exists", f"something has changed (`{command}` ends with 1)", command, check)


def assign_distinct_ids(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria with distinct ids: a duplicate gets the name of its folder, or a number."""
    by_id: dict[str, Criterion] = {}
    for criterion in criteria:
        folder = re.match(r"cd (\S+) &&", criterion.command)
        rule_id = criterion.id
        if rule_id in by_id and folder:
            rule_id = f"{criterion.id}-{re.sub(r'[^a-z0-9]+', '-', folder[1].lower()).strip('-')}"
        if rule_id in by_id:
            rule_id = choose_free_id(criterion.id, by_id)
        by_id[rule_id] = replace(criterion, id=rule_id)
    return tuple(by_id.values())


# -- installed tools

# Finds a program by its name, a module by `python -m NAME`, a plugin by its distribution; None if it is absent.
FindTool = Callable[[str], str | None]
_MODULE = "python -m "


def find_installed_tool(name: str) -> str | None:
    """Find a program, module or plugin in the environment of this process."""
    if name == COVERAGE_PLUGIN:
        name = f"{_MODULE}pytest_cov"
    if not name.startswith(_MODULE):
        return shutil.which(name)
    try:  # only the top package: finding a submodule would import it
        return name if find_spec(name.removeprefix(_MODULE).partition(".")[0]) else None
    except ValueError:
        return None


def adapt_to_installed_tools(criterion: Criterion, project: Project, find_tool: FindTool) -> Criterion:
    """Replace a command whose tool is absent, or else name the tool in the criterion.

    Without tox or nox, pytest runs the project's tests directly; without pytest-cov, coverage runs pytest. Tests that
    pytest collects need only its plugins.
    """
    is_collected = criterion.is_project_tests or (isinstance(criterion.check, dict) and "tests" in criterion.check)
    required = (
        name
        for step in split_steps(criterion.command)
        for name in list_requirements(step.command)
        if not _is_in_project(name, step, project) and (name == COVERAGE_PLUGIN or not is_collected)
    )
    missing = next((name for name in required if find_tool(name) is None), "")
    if missing == COVERAGE_PLUGIN and find_tool("coverage") and (other := replace_plugin(criterion)):
        return other
    runner = missing.removeprefix(_MODULE)
    can_run_tests = bool(project.find_python_tests()) and not needs_shell(criterion.command)
    if runner in ("tox", "nox") and criterion.id == TESTS_PASS and can_run_tests:
        description = f"the tests pass (`pytest`, for {runner} is not here)"
        return replace(criterion, description=description, command="pytest", check=None)
    return replace(criterion, missing_tool=missing)


# Tools that pip installs; others come with their language or system.
_PIP_TOOLS = frozenset(program for program, language in LANGUAGES.items() if language == "python") | split_names(
    "pytest-cov pre-commit codespell yamllint lint-imports"
)
_PACKAGES = {"lint-imports": "import-linter"}


def describe_installation(tool: str) -> str:
    """Describe how a missing tool is installed."""
    name = tool.removeprefix(_MODULE)
    return f"pip install {_PACKAGES.get(name, name)}" if name in _PIP_TOOLS else f"{name}, as its documentation says"


def _is_in_project(name: str, step: ScriptCommand, project: Project) -> bool:
    """Return whether a requirement is a script or a module of the project."""
    if name.startswith(_MODULE):
        top = name.removeprefix(_MODULE).partition(".")[0]
        places = (join_folder(folder, top) for folder in (step.folder, join_folder(step.folder, "src")))
        return any(path == f"{place}.py" or path.startswith(f"{place}/") for place in places for path in project.files)
    return "/" in name and join_folder(step.folder, name.removeprefix("./")) in project.files
