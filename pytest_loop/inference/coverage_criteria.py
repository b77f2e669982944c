"""Turn a command that measures coverage into a criterion: a share to reach, or more than before the run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from pytest_loop.inference.command_candidate import CommandCandidate
from pytest_loop.inference.command_lines import strip_wrappers
from pytest_loop.inference.coverage_threshold import NumericGoal
from pytest_loop.inference.data_files import get_mapping
from pytest_loop.inference.project_files import Project, get_folder, is_in_folder, join_folder
from pytest_loop.inference.proposal import Criterion, build_run_options

DEFAULT_COVERAGE = NumericGoal(">=", 80.0)
COVERAGE_ID = "a.tests.coverage"
# The percentage of covered lines in the output of each tool.
_NUMBER = r"(\d+(?:\.\d+)?)"
_PYTHON_COVERAGE = rf"^TOTAL.*?{_NUMBER}%"
_COVERAGE_OUTPUT = {
    **dict.fromkeys(("pytest", "coverage"), _PYTHON_COVERAGE),
    **dict.fromkeys(
        ("nyc", "c8", "npm", "pnpm", "yarn", "bun"), rf"^All files\s*\|(?:\s*[\d.]+\s*\|){{3}}\s*{_NUMBER}"
    ),
    "go": rf"^total:\s+\(statements\)\s+{_NUMBER}%",
    "cargo llvm-cov": rf"^TOTAL(?:\s+\S+){{8}}\s+{_NUMBER}%",
    "cargo tarpaulin": rf"{_NUMBER}% coverage",
}
_PLACE = re.compile(r"\b(?:in|of|for|under|inside|to|from)\s+(?:the\s+)?[`\"']?(?P<path>[\w.-][\w./-]*)", re.IGNORECASE)
_ALL_COVERAGE = re.compile(r"--cov(?:=\.)?(?=\s|$)")


@dataclass(frozen=True)
class CoverageGoal:
    """The coverage that a task asks for; without a threshold it has to grow. `part` is a folder or file, or empty."""

    threshold: NumericGoal | None = None
    part: str = ""


def build_coverage_criterion(candidate: CommandCandidate, project: Project, goal: CoverageGoal) -> Criterion | None:
    """Build the criterion of a command that measures coverage; None if the format of its output is unknown."""
    candidate, pattern = _limit_to_part(candidate, find_coverage_pattern(candidate, project), goal.part)
    if pattern is None:
        return None
    command = candidate.command_line
    measured = goal.part or "the lines"
    threshold = goal.threshold or NumericGoal(">", 0.0)
    share = (
        f"{threshold.op} {threshold.value:g} % of {measured}" if goal.threshold else f"more of {measured} than before"
    )
    metric = {"command": command, "pattern": pattern, "op": threshold.op, "value": threshold.value}
    check = {"metric": metric, **build_run_options(command, candidate.purpose)}
    return Criterion(
        COVERAGE_ID, f"the tests cover {share} (`{command}`)", command, check, needs_baseline=goal.threshold is None
    )


def build_baseline_check(criterion: Criterion) -> dict[str, Any]:
    """Return the check that measures coverage before the run, even if tests fail."""
    return _change_metric(criterion, command=criterion.command.replace(" && ", " ; "))


def _change_metric(criterion: Criterion, **values: Any) -> dict[str, Any]:
    """Return the check of a criterion with other values in its metric."""
    check = get_mapping(criterion.check)
    return {**check, "metric": {**check["metric"], **values}}


def set_baseline(criterion: Criterion, number: float) -> Criterion:
    """Return the criterion with the number that it has to exceed; a baseline of 100 % has to be kept."""
    threshold = NumericGoal(">", number) if number < 100 else NumericGoal(">=", 100)
    check = _change_metric(criterion, op=threshold.op, value=threshold.value)
    description = criterion.description.replace("than before", f"than the {number:g} % before")
    return replace(criterion, description=description, check=check, needs_baseline=False)


def replace_plugin(criterion: Criterion) -> Criterion | None:
    """Return the criterion with coverage in place of pytest-cov; None if its command is not a known pytest-cov call."""
    call = re.fullmatch(r"pytest --cov(?:=(?P<folder>\S+))? --cov-report=term", criterion.command)
    if not call or "metric" not in get_mapping(criterion.check):
        return None
    source = f" --source={call['folder']}" if call["folder"] else ""
    command = f"coverage run{source} -m pytest && coverage report"
    check = {**_change_metric(criterion, command=command), "shell": True}
    description = criterion.description.replace(f"`{criterion.command}`", f"`{command}`")
    return replace(criterion, description=description, command=command, check=check)


def find_coverage_pattern(candidate: CommandCandidate, project: Project) -> str | None:
    """Return the pattern of the percentage in the output of a command; None if its format is unknown."""
    words = strip_wrappers(candidate.command)
    pattern = _COVERAGE_OUTPUT.get(" ".join(words[:2])) or _COVERAGE_OUTPUT.get(words[0])
    return pattern or (_PYTHON_COVERAGE if project.find_python_tests() else None)


def read_coverage_threshold(project: Project, folder: str) -> NumericGoal | None:
    """Return the coverage that the project's settings demand; None if they demand none."""
    report = get_mapping(project.data.get(join_folder(folder, "pyproject.toml")), "tool", "coverage", "report")
    jest = get_mapping(project.data.get(join_folder(folder, "package.json")), "jest", "coverageThreshold", "global")
    for value in (report.get("fail_under"), jest.get("lines")):
        if isinstance(value, (int, float)) and 0 < value <= 100:
            return NumericGoal(">=", float(value))
    return None


# -- a part of the project


def find_part(task: str, project: Project) -> str:
    """Return the folder or file that the task wants to be covered, empty if it names none: `add tests in lib/`."""
    sources = project.files.difference(project.find_tests())
    for match in _PLACE.finditer(task):
        path = match["path"].rstrip("/.")
        if path in sources or any(path and is_in_folder(name, path) for name in sources):
            return path
        modules = [name for name in sources if PurePosixPath(name).name == f"{path}.py"]
        if len(modules) == 1:
            return modules[0]
    return ""


def _limit_to_part(candidate: CommandCandidate, pattern: str | None, part: str) -> tuple[CommandCandidate, str | None]:
    """Limit command and pattern to a part of the project; only Python tools at the root can be limited, others stay."""
    command = candidate.command
    is_file = part.endswith(".py")
    if not part or candidate.folder:
        return candidate, pattern
    if command.endswith("coverage report"):
        return replace(
            candidate, command=f"{command} --include={shlex.quote(part if is_file else f'{part}/*')}"
        ), pattern
    if _ALL_COVERAGE.search(command):
        folder = get_folder(part) if is_file else part
        option = f"--cov={shlex.quote(folder or '.')}"
        limited = replace(candidate, command=_ALL_COVERAGE.sub(lambda _: option, command))
        return limited, rf"^{re.escape(part)}\s.*?{_NUMBER}%" if is_file else pattern
    return candidate, pattern
