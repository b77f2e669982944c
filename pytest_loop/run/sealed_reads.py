"""Find and seal the files that test code reads, data and modules, at the baseline and in later sessions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from pytest_loop.core.judging.files_to_seal import ReadFacts, find_files_to_seal
from pytest_loop.inference.data_files import get_mapping
from pytest_loop.inference.project_files import read_files
from pytest_loop.workspace.file_scan import TOOL_FOLDERS
from pytest_loop.workspace.seal import format_path_pattern
from pytest_loop.workspace.sealed_files import SealedFiles


def find_read_patterns(
    project: SealedFiles, reads: Collection[tuple[str, str]], plugins: Collection[str]
) -> tuple[str, ...]:
    """Return the patterns of files to seal because a session read them; `reads` are pairs of a path and its reader."""
    entries = project.start.entries

    def read_text(path: str) -> str:
        return (project.read_start_content(path) or b"").decode("utf-8", "replace") if path in entries else ""

    facts = ReadFacts(
        reads=[(path, reader) for path, reader in reads if path in entries or _is_environment_file(path)],
        listings=[(path, reader) for path, reader in reads if path in project.start.folders],
        files=entries,
        is_test=project.sealed.matches,
        sources=[path for path in entries if path.endswith(".py") and not project.sealed.matches(path)],
        read_text=read_text,
        plugins=[path for path in plugins if path in entries],
        packages=tuple(_list_packages(project.root, entries)),
    )
    return tuple(map(format_path_pattern, find_files_to_seal(facts)))


def seal_late_reads(project: SealedFiles, reads: Collection[tuple[str, str]]) -> None:
    """Seal edited files that tests read now, but not at the baseline, because they failed too early."""
    changes = project.changes
    edited = {path for path in (*changes.modified, *changes.removed) if not project.sealed.matches(path)}
    if not edited.isdisjoint(path for path, _ in reads):
        reads = [(path, reader) for path, reader in reads if not _is_environment_file(path)]
        project.extend_seal(find_read_patterns(project, reads, ()), ())


def _is_environment_file(path: str) -> bool:
    """Return whether a file has settings of the environment: git often ignores it, but it is no cache."""
    file = PurePosixPath(path)
    return file.name.startswith(".env") and TOOL_FOLDERS.isdisjoint(file.parts)


def _list_packages(root: Path, entries: Collection[str]) -> Iterator[str]:
    """Yield the folders of the product: `src`, and the package that has the name of the project."""
    yield "src"
    data = read_files(root, ["pyproject.toml"]).data.get("pyproject.toml")
    name = get_mapping(data, "project").get("name", "")
    package = re.sub(r"[-.]+", "_", str(name)).lower()
    if f"{package}/__init__.py" in entries:
        yield package
