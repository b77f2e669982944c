"""Find verification commands in package.json: its scripts, and the tools among its dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.data_files import get_mapping
from pytest_loop.inference.project_files import MAX_SCRIPTS, Project, get_folder, join_folder
from pytest_loop.inference.shell_script import is_trivial
from pytest_loop.inference.tool_purposes import Purpose, classify_script, split_names

_LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lockb": "bun",
    "bun.lock": "bun",
    "package-lock.json": "npm",
}
# Dependencies that verify something, and how they are called if no script does.
_TOOLS: tuple[tuple[str, str, Purpose], ...] = (
    ("vitest", "npx vitest run", Purpose.TEST),
    ("jest", "npx jest", Purpose.TEST),
    ("mocha", "npx mocha", Purpose.TEST),
    ("eslint", "npx eslint .", Purpose.LINT),
    ("@biomejs/biome", "npx biome check .", Purpose.LINT),
    ("typescript", "npx tsc --noEmit", Purpose.TYPES),
)
_USUAL_SCRIPTS = split_names("test lint build coverage typecheck docs")


def find_node_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the scripts of every package.json, then the tools among its dependencies that no script calls."""
    for path in project.find_by_name("package.json"):
        scripts = list(_list_scripts(project, path))
        yield from scripts
        purposes = {script.purpose for script in scripts if not script.is_trivial}
        yield from _list_tools(project, path, purposes)
    if "tsconfig.json" in project.files and "package.json" not in project.texts:
        yield _build_candidate("", "npx tsc --noEmit", Purpose.TYPES, SourceLine("tsconfig.json"), rank=3)


def _find_manager(project: Project, path: str, package: Any) -> str:
    """Return the package manager that the manifest declares, or that its lock file belongs to."""
    declared = re.match(r"(npm|pnpm|yarn|bun)@", str(get_mapping(package).get("packageManager")))
    folders = (get_folder(path), "")
    locked = (name for folder in folders for lock, name in _LOCK_FILES.items() if project.has_file(folder, lock))
    return declared[1] if declared else next(locked, "npm")


def _list_scripts(project: Project, path: str) -> Iterator[CommandCandidate]:
    package = project.data.get(path, {})
    manager = _find_manager(project, path, package)
    for name, body in islice(get_mapping(package, "scripts").items(), MAX_SCRIPTS):
        purpose = classify_script(name)
        if purpose and isinstance(body, str):
            source = project.locate(path, rf"\"{re.escape(name)}\"\s*:", r"\"scripts\"\s*:")
            command = f"{manager} test" if name == "test" and manager != "bun" else f"{manager} run {name}"
            rank = 0 if name in _USUAL_SCRIPTS else 2
            yield _build_candidate(path, command, purpose, source, rank=rank, is_trivial=is_trivial(body), script=body)


def _list_tools(project: Project, path: str, purposes: set[Purpose]) -> Iterator[CommandCandidate]:
    package = project.data.get(path)
    dependencies = {**get_mapping(package, "dependencies"), **get_mapping(package, "devDependencies")}
    settings = join_folder(get_folder(path), "tsconfig.json")
    for name, command, purpose in _TOOLS:
        if purpose in purposes:
            continue
        if name in dependencies:
            yield _build_candidate(path, command, purpose, project.locate(path, rf"\"{re.escape(name)}\"\s*:"), rank=3)
        elif name == "typescript" and settings in project.files:
            yield _build_candidate(path, command, purpose, SourceLine(settings), rank=3)
    if Purpose.COVERAGE not in purposes and Purpose.TEST in purposes:
        yield _build_candidate(path, "npm test -- --coverage", Purpose.COVERAGE, SourceLine(path), is_guess=True)


def _build_candidate(path: str, command: str, purpose: Purpose, source: SourceLine, **fields: Any) -> CommandCandidate:
    return CommandCandidate(command, purpose, Layer.MANIFESTS, source, get_folder(path), "node", **fields)
