"""From commands to criteria: the project's own tests, a number, or a command that has to end well."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from pytest_loop.inference import coverage_checks
from pytest_loop.inference.command_candidate import Candidate, Source
from pytest_loop.inference.command_lines import normalize_command
from pytest_loop.inference.data_files import collect_strings, get_mapping
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import Criterion, build_command_check
from pytest_loop.inference.shell_script import needs_shell
from pytest_loop.inference.task_intent import Threshold
from pytest_loop.inference.tool_purposes import Purpose

TESTS_PASS = "a.tests.pass"  # noqa: S105 - not a password
_IDS = {
    Purpose.TEST: (TESTS_PASS, "the tests pass"),
    Purpose.COVERAGE: ("a.tests.coverage", "the tests cover enough"),
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
# Where tests are kept, by language: one of these has to exist.
_TEST_FILES = {
    "python": ("**/test_*.py", "**/*_test.py"),
    "node": ("**/*.test.*", "**/*.spec.*"),
    "go": ("**/*_test.go",),
    "java": ("**/src/test/**/*",),
    "ruby": ("**/*_spec.rb", "**/*_test.rb"),
}


def find_whole_suite_targets(project: Project) -> tuple[str, ...]:
    """The targets that mean all tests: what pytest is told to collect, and a folder in which all of them are."""
    settings = (get_mapping(project.data.get(path), *section) for path, section in _PYTEST_SETTINGS.items())
    paths = (text for one in settings for text in collect_strings(one.get("testpaths")))
    told = [word.rstrip("/") for text in paths for word in text.split()]
    roots = {path.partition("/")[0] for path in project.find_python_tests()}
    return (*told, *(root for root in roots if len(roots) == 1 and not root.endswith(".py")))


def build_criterion(
    candidate: Candidate, project: Project, wanted: Threshold | None = None, also: Sequence[Source] = ()
) -> Criterion:
    """The criterion of a command; `also` are other places that say the same."""
    name, text = _IDS[candidate.purpose]
    line = render_command(candidate)
    sources = tuple(dict.fromkeys((candidate.source, *also)))
    if (
        candidate.purpose is Purpose.COVERAGE
        and wanted
        and (found := coverage_checks.find_output_pattern(candidate, project))
    ):
        check: dict[str, Any] | None = coverage_checks.build_metric_check(candidate, line, found, wanted)
        text = f"the tests cover {wanted.op} {wanted.value:g} % of the lines"
        return Criterion(name, f"{text} (`{line}`)", line, check, sources)
    selected = (
        parse_pytest_selection(candidate, find_whole_suite_targets(project))
        if candidate.purpose is Purpose.TEST
        else None
    )
    if selected is None:
        return Criterion(name, f"{text} (`{line}`)", line, build_command_check(line, candidate.purpose), sources)
    targets, marker = selected
    check = {"tests": list(targets)} if targets else {"tests": marker} if marker else None
    return Criterion(name, f"{text} (`{line}`)", line, check, sources, targets)


def render_command(candidate: Candidate) -> str:
    """The command as it is run from the root."""
    return f"cd {shlex.quote(candidate.folder)} && {candidate.command}" if candidate.folder else candidate.command


def parse_pytest_selection(candidate: Candidate, whole: Collection[str]) -> tuple[tuple[str, ...], str] | None:
    """What a call of pytest selects: targets, or an expression over marks; None for what is more than that.

    In a folder of its own pytest may have a configuration of its own, so that it stays a command there, and so does
    what asks for more than tests that pass.
    """
    name, *rest = normalize_command(candidate.command, whole) or ("",)
    is_plain = not (candidate.folder or needs_shell(candidate.command) or "--cov-fail-under" in candidate.command)
    if name != "pytest" or not is_plain:
        return None
    if len(rest) == 2 and rest[0] == "-m":
        return (), rest[1]
    return None if any(word.startswith("-") for word in rest) else (tuple(map(_node, rest)), "")


def _node(target: str) -> str:
    """A target as `tests` takes it: a mere word would be a mark."""
    return target if "/" in target or "::" in target or target.endswith(".py") else f"{target}/"


def assign_distinct_ids(found: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """The criteria with ids of their own: the second of a name is called after its folder or its number."""
    seen: dict[str, Criterion] = {}
    for one in found:
        folder = re.match(r"cd (\S+) &&", one.command)
        name = one.id
        if name in seen and folder:
            name = f"{one.id}-{re.sub(r'[^a-z0-9]+', '-', folder[1].lower()).strip('-')}"
        number = 2
        while name in seen:
            name = f"{one.id}-{number}"
            number += 1
        seen[name] = replace(one, id=name)
    return tuple(seen.values())


def build_tests_exist(family: str, sources: tuple[Source, ...]) -> Criterion | None:
    """That there are tests at all, for a project that has none yet."""
    globs = _TEST_FILES.get(family)
    if not globs:
        return None
    found: list[dict[str, Any]] = [{"files": {"exist": glob}} for glob in globs]
    check = {"any": found} if len(found) > 1 else found[0]
    return Criterion("a.tests.exist", "tests for the new code exist", "", check, sources)


def build_change_criterion() -> Criterion:
    """All that can be asked where nothing verifies anything: something has changed."""
    command = "git diff --quiet HEAD"
    check = {"command": command, "expect_exit": 1}
    return Criterion("a.change.exists", f"something has changed (`{command}` ends with 1)", command, check)
