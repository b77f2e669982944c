"""JavaScript and TypeScript: the scripts of package.json, and what its dependencies imply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.data_files import get_mapping
from pytest_loop.inference.project_files import MOST_SCRIPTS, Project, get_folder
from pytest_loop.inference.shell_script import is_trivial
from pytest_loop.inference.tool_purposes import Purpose, classify_script

FAMILY = "node"
_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lockb": "bun",
    "bun.lock": "bun",
    "package-lock.json": "npm",
}
# A tool among the dependencies, and how it is called where no script does it.
_IMPLIED: tuple[tuple[str, str, Purpose], ...] = (
    ("vitest", "npx vitest run", Purpose.TEST),
    ("jest", "npx jest", Purpose.TEST),
    ("mocha", "npx mocha", Purpose.TEST),
    ("eslint", "npx eslint .", Purpose.LINT),
    ("@biomejs/biome", "npx biome check .", Purpose.LINT),
    ("typescript", "npx tsc --noEmit", Purpose.TYPES),
)


def find_candidates(project: Project) -> Iterator[Candidate]:
    """What the packages of a project can be verified with."""
    for path in project.find_named("package.json"):
        data = project.data.get(path, {})
        known = islice(get_mapping(data, "scripts").items(), MOST_SCRIPTS)
        scripts = {name: body for name, body in known if isinstance(body, str)}
        made = list(_scripts(project, path, scripts, _manager(project, path, data)))
        yield from made
        yield from _implied(project, path, data, {one.purpose for one in made if not one.is_trivial})


def _manager(project: Project, path: str, data: Any) -> str:
    """Who runs the scripts: what the manifest says, or the lock file beside it or at the root."""
    said = re.match(r"(npm|pnpm|yarn|bun)@", str(get_mapping(data).get("packageManager")))
    if said:
        return said[1]
    found = (
        manager
        for folder in (get_folder(path), "")
        for lock, manager in _LOCKS.items()
        if project.has_file(folder, lock)
    )
    return next(found, "npm")


def _scripts(project: Project, path: str, scripts: dict[str, str], manager: str) -> Iterator[Candidate]:
    for name, body in scripts.items():
        purpose = classify_script(name)
        if purpose is None:
            continue
        source = project.locate(path, rf"\"{re.escape(name)}\"\s*:", r"\"scripts\"\s*:")
        command = f"{manager} test" if name == "test" and manager != "bun" else f"{manager} run {name}"
        is_plain = name in ("test", "lint", "build", "coverage", "typecheck", "docs")
        yield Candidate(
            command,
            purpose,
            Layer.MANIFESTS,
            source,
            get_folder(path),
            FAMILY,
            is_trivial=is_trivial(body),
            rank=0 if is_plain else 2,
        )


def _implied(project: Project, path: str, data: Any, known: set[Purpose]) -> Iterator[Candidate]:
    """What the dependencies are there for, where no script says it."""
    wanted = {**get_mapping(data, "dependencies"), **get_mapping(data, "devDependencies")}
    for name, command, purpose in _IMPLIED:
        if name in wanted and purpose not in known:
            source = project.locate(path, rf"\"{re.escape(name)}\"\s*:")
            yield Candidate(command, purpose, Layer.MANIFESTS, source, get_folder(path), FAMILY, rank=3)
    if Purpose.COVERAGE not in known and Purpose.TEST in known:
        yield Candidate(
            "npm test -- --coverage",
            Purpose.COVERAGE,
            Layer.MANIFESTS,
            Source(path),
            get_folder(path),
            FAMILY,
            is_guess=True,
        )
