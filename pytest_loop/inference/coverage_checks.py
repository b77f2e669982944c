"""How much of the code the tests reach: which number is meant, and where a tool prints it."""

from __future__ import annotations

from typing import Any

from pytest_loop.inference.command_candidate import Candidate
from pytest_loop.inference.command_lines import bare
from pytest_loop.inference.data_files import mapping
from pytest_loop.inference.project_files import Project, in_folder
from pytest_loop.inference.proposal import runs
from pytest_loop.inference.task_intent import Threshold

DEFAULT = Threshold(">=", 80.0)
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


def pattern(candidate: Candidate, project: Project) -> str | None:
    """Where the number stands in what a command prints; None where nobody knows."""
    said = bare(candidate.command)
    known = _PRINTED.get(" ".join(said[:2])) or _PRINTED.get(said[0])
    return known or (_PYTHON if project.python_tests() else None)


def configured(project: Project, folder: str) -> Threshold | None:
    """The share that the project asks of itself."""
    report = mapping(project.data.get(in_folder(folder, "pyproject.toml")), "tool", "coverage", "report")
    jest = mapping(project.data.get(in_folder(folder, "package.json")), "jest", "coverageThreshold", "global")
    for value in (report.get("fail_under"), jest.get("lines")):
        if isinstance(value, (int, float)) and 0 < value <= 100:
            return Threshold(">=", float(value))
    return None


def metric_check(candidate: Candidate, line: str, found: str, wanted: Threshold) -> dict[str, Any]:
    """The check that reads the number in what a command line prints, and compares it."""
    measured = {"command": line, "pattern": found, "op": wanted.op, "value": wanted.value}
    return {"metric": measured, **runs(line, candidate.purpose)}
