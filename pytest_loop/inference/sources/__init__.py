"""Find verification commands in every layer of a project: documents, manifests and CI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from pytest_loop.inference.command_candidate import CommandCandidate
from pytest_loop.inference.command_lines import strip_wrappers
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.sources.ci_pipelines import find_ci_candidates
from pytest_loop.inference.sources.node_packages import find_node_candidates
from pytest_loop.inference.sources.project_documents import find_agent_file_candidates, find_record_candidates
from pytest_loop.inference.sources.python_packages import find_python_candidates
from pytest_loop.inference.sources.task_runners import find_runner_candidates
from pytest_loop.inference.sources.toolchains import find_toolchain_candidates

MAX_CANDIDATES = 500


def find_candidates(project: Project) -> list[CommandCandidate]:
    """Return the commands of all layers, limited in number for each layer."""
    layers = (find_agent_file_candidates, find_manifest_candidates, find_ci_candidates, find_record_candidates)
    return [candidate for find in layers for candidate in _join_reports(islice(find(project), MAX_CANDIDATES))]


def _join_reports(candidates: Iterable[CommandCandidate]) -> Iterator[CommandCandidate]:
    """Join each `coverage run`, which prints no number, with the report after it; add a report if there is none."""
    measurement: CommandCandidate | None = None
    for candidate in candidates:
        words = strip_wrappers(candidate.command)[:2]
        is_report = measurement and words == ["coverage", "report"] and _is_same_place(candidate, measurement)
        if measurement:
            report = candidate.command if is_report else "coverage report"
            yield replace(measurement, command=f"{measurement.command} && {report}")
        is_measurement = words == ["coverage", "run"] and "&&" not in candidate.command
        measurement = candidate if is_measurement else None
        if not is_measurement and not is_report:
            yield candidate
    if measurement:
        yield replace(measurement, command=f"{measurement.command} && coverage report")


def _is_same_place(candidate: CommandCandidate, other: CommandCandidate) -> bool:
    return (candidate.source.path, candidate.folder) == (other.source.path, other.folder)


def find_manifest_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the commands that manifests and task runners of the project offer, each once."""
    finders = (find_python_candidates, find_node_candidates, find_toolchain_candidates, find_runner_candidates)
    return iter(dict.fromkeys(chain.from_iterable(find(project) for find in finders)))
