"""How much of the code the tests reach: which number is meant, and where a tool prints it."""

from __future__ import annotations

from typing import Any

from pytest_loop.inference.command_candidate import Candidate
from pytest_loop.inference.command_lines import strip_wrappers
from pytest_loop.inference.data_files import get_mapping
from pytest_loop.inference.project_files import Project, join_folder
from pytest_loop.inference.proposal import build_run_options
from pytest_loop.inference.task_intent import Threshold

DEFAULT_THRESHOLD = Threshold(">=", 80.0)
_NUMBER = r"(\d+(?:\.\d+)?)"
# The number of lines covered, in percent, as each tool prints it.
_PYTHON = rf"^TOTAL.*?{_NUMBER}%"
_NODE = rf"^All files\s*\|(?:\s*[\d.]+\s*\|){{3}}\s*{_NUMBER}"
_PRINTED = {
    "pytest": _PYTHON,
    "coverage": _PYTHON,
    "go": rf"^total:\s+\(statements\)\s+{_NUMBER}%",
    "cargo llvm-cov": rf"^TOTAL(?:\s+\S+){{8}}\s+{_NUMBER}%",
    "cargo tarpaulin": rf"{_NUMBER}% coverage",
    "nyc": _NODE,
    "c8": _NODE,
    "npm": _NODE,
    "pnpm": _NODE,
    "yarn": _NODE,
    "bun": _NODE,
}


def find_output_pattern(candidate: Candidate, project: Project) -> str | None:
    """Where the number stands in what a command prints; None where nobody knows."""
    said = strip_wrappers(candidate.command)
    known = _PRINTED.get(" ".join(said[:2])) or _PRINTED.get(said[0])
    return known or (_PYTHON if project.find_python_tests() else None)


def read_configured_threshold(project: Project, folder: str) -> Threshold | None:
    """The share that the project asks of itself."""
    report = get_mapping(project.data.get(join_folder(folder, "pyproject.toml")), "tool", "coverage", "report")
    jest = get_mapping(project.data.get(join_folder(folder, "package.json")), "jest", "coverageThreshold", "global")
    for value in (report.get("fail_under"), jest.get("lines")):
        if isinstance(value, (int, float)) and 0 < value <= 100:
            return Threshold(">=", float(value))
    return None


def build_metric_check(candidate: Candidate, line: str, found: str, wanted: Threshold) -> dict[str, Any]:
    """The check that reads the number in what a command line prints, and compares it."""
    measured = {"command": line, "pattern": found, "op": wanted.op, "value": wanted.value}
    return {"metric": measured, **build_run_options(line, candidate.purpose)}
