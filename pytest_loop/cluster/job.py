"""Values that travel between the run and its workers: one shard of an evaluation, and its result, as JSON."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from pydantic import Field

from pytest_loop.core.model.rules import Evidence, SessionPlan, Value
from pytest_loop.core.model.session_order import SessionOrder

Environment = dict[str, str]
# Variables that change how pytest judges.
_VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONPATH", "PYTHONOPTIMIZE")


class Piece(Value):
    """A file or a link of the tree: its content is found by its hash."""

    kind: str
    digest: str
    mode: int
    size: int


class FencePlan(Value):
    """The fence around the session: its tool, and the paths that are read-only and writable."""

    tool: str
    read_only: tuple[str, ...]
    writable: tuple[str, ...]


class Job(Value):
    """One shard of an evaluation. Paths below `root` become paths of the worker's tree.

    `modules` are names of modules in the tree, which must not be installed at the worker.
    """

    root: str
    folder: str
    pieces: dict[str, Piece]
    sealed: tuple[str, ...]
    arguments: tuple[str, ...]
    timeout: float
    order: SessionOrder
    fence: FencePlan | None
    environment: Environment
    modules: tuple[str, ...] = ()


class Answer(Value):
    """The reply of a worker: `missing` pieces, a `refusal`, or the report of its session."""

    missing: tuple[str, ...] = ()
    refusal: str = ""
    worker: str = ""
    plan: SessionPlan | None = None
    evidence: dict[str, Evidence] = Field(default_factory=dict)
    problems: dict[str, str] = Field(default_factory=dict)
    canaries: tuple[bool, ...] = ()
    plugins: tuple[str, ...] = ()
    reads: tuple[tuple[str, str], ...] = ()
    interference: tuple[tuple[str, str], ...] = ()
    contradictions: tuple[str, ...] = ()
    exit_status: int | None = None
    pytest_failures: int = 0
    ending: str = ""
    output: str = ""


def describe_environment() -> Environment:
    """Return what has to be the same at a worker: interpreter, system, variables, and installed distributions."""
    versions = {f"{item.name} (installed)": item.version for item in metadata.distributions() if item.name}
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {
        "Python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        **variables,
        **versions,
    }


def find_differences(expected: Environment, actual: Environment) -> list[str]:
    """Return a text for each value that differs."""
    return [
        f"{name} is {actual.get(name, 'missing')}, expected {expected.get(name, 'none')}"
        for name in sorted(expected.keys() | actual.keys())
        if expected.get(name) != actual.get(name)
    ]


def list_modules(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the modules at the top of a tree, or of its folder `src`."""
    names = set()
    for path in paths:
        parts = PurePath(path).parts
        parts = parts[1:] if parts[0] == "src" else parts
        if path.endswith(".py") and parts:
            names.add(parts[0].removesuffix(".py"))
    return tuple(sorted(names - {"conftest", "setup", "tests", "test", "docs", "examples"}))


def find_shadowing_distributions(root: Path | None, modules: Iterable[str]) -> Iterator[str]:
    """Yield the distributions that would be imported in place of the tree's files."""
    modules = set(modules)
    for name, owners in metadata.packages_distributions().items():
        if name in modules:
            yield from owners
    for distribution in metadata.distributions():
        text = distribution.read_text("direct_url.json") or ""
        if root is not None and '"editable"' in text:
            place = unquote(urlsplit(text.partition('"url"')[2].partition('"')[2].partition('"')[0]).path)
            if place and PurePath(os.path.realpath(place)).is_relative_to(os.path.realpath(root)):
                yield distribution.name
