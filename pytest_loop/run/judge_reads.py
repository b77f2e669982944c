"""Seal what the judge reads: data and modules that test code opens, at the baseline and in later sessions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from pytest_loop.core.judging.judge_files import ReadFacts, find_judge_files
from pytest_loop.inference.project_files import read_files
from pytest_loop.workspace.file_scan import TOOL_FOLDERS
from pytest_loop.workspace.seal import format_path_pattern
from pytest_loop.workspace.sealed_files import SealedFiles

_ENVIRONMENT_FILE = ".env"
_PACKAGE = "__init__.py"


def find_read_patterns(
    project: SealedFiles, reads: Collection[tuple[str, str]], plugins: Collection[str]
) -> tuple[str, ...]:
    """Return the patterns of files that belong to the judge, because of what a session read."""
    entries = project.start.entries
    sources = [path for path in entries if path.endswith(".py") and not project.sealed.matches(path)]

    def read_text(path: str) -> str:
        return (project.read_start_content(path) or b"").decode("utf-8", "replace") if path in entries else ""

    facts = ReadFacts(
        reads=[(path, owner) for path, owner in reads if path in entries or _is_environment_file(path)],
        listings=[(path, owner) for path, owner in reads if path in project.start.folders],
        files=entries,
        is_test=project.sealed.matches,
        sources=sources,
        read_text=read_text,
        plugins=[path for path in plugins if path in entries],
        packages=tuple(_list_packages(project.root, entries)),
    )
    return tuple(map(format_path_pattern, find_judge_files(facts)))


def seal_late_reads(project: SealedFiles, reads: Collection[tuple[str, str]]) -> None:
    """Seal edited files that tests read for the first time: tests that failed early did not get to them before."""
    changes = project.changes
    edited = {path for path in (*changes.modified, *changes.removed) if not project.sealed.matches(path)}
    if not edited.isdisjoint(path for path, _ in reads):
        reads = [(path, owner) for path, owner in reads if not _is_environment_file(path)]
        project.extend_seal(find_read_patterns(project, reads, ()), ())


def _is_environment_file(path: str) -> bool:
    """Return whether a file has settings that git often ignores; other ignored files are caches."""
    pure = PurePosixPath(path)
    return pure.name.startswith(_ENVIRONMENT_FILE) and TOOL_FOLDERS.isdisjoint(pure.parts)


def _list_packages(root: Path, entries: Collection[str]) -> Iterator[str]:
    """Yield the folders of the product: `src`, and the package that has the name of the project."""
    yield "src"
    data = read_files(root, ["pyproject.toml"]).data.get("pyproject.toml", {})
    metadata = data.get("project", {})
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    package = re.sub(r"[-.]+", "_", str(name)).lower()
    if package and f"{package}/{_PACKAGE}" in entries:
        yield package
