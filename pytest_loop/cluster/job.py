"""Values that travel between the run and its workers: one evaluation, and the report of a shard."""

from __future__ import annotations

import os
import platform
import sys
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import metadata
from pathlib import Path, PurePath
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import Field

from pytest_loop.core.model.rules import Evidence, SessionPlan, Value
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.workspace.file_tree import read_stamp

Environment = dict[str, str]
AnyValue = TypeVar("AnyValue", bound=Value)
_INSTALLERS = ("pip", "uv")
# Variables that change how pytest judges.
_VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONPATH", "PYTHONOPTIMIZE")
# Fields of a session result that hold facts about files, merged over all shards.
MERGED_FIELDS = ("reads", "interference", "opened_to_write", "module_folders", "plugin_files")


class FencePlan(Value):
    """The fence around the session: its tool, and the paths that are read-only and writable."""

    tool: str
    read_only: tuple[str, ...]
    writable: tuple[str, ...]


class Project(Value):
    """The constant part of all evaluations of a run. Paths below `root` become paths of the worker's tree.

    Of the `sealed` files, no session may write those that are `watched`.
    `modules` are names of modules in the tree, which must not be installed at the worker. A worker with another
    environment may build this one from `requirements`, the hashes of files by path.
    """

    root: str
    folder: str
    sealed: tuple[str, ...]
    watched: tuple[str, ...]
    arguments: tuple[str, ...]
    timeout: float
    fence: FencePlan | None
    environment: Environment
    modules: tuple[str, ...] = ()
    requirements: dict[str, str] = Field(default_factory=dict)


class Job(Value):
    """One evaluation: hashes of the project and of a list of files, and what has changed since this list.

    `new` holds small contents of changed files as Latin-1, by hash; a worker asks for others. `outputs` are files and
    folders (with a slash at the end) that cases write, and that return with the answer. Instead of a session, an
    `engine` may carry out its share of the `trials`, a request as JSON.
    """

    project: str
    base: str
    changes: str
    new: dict[str, str] = Field(default_factory=dict)
    order: SessionOrder
    outputs: tuple[str, ...] = ()
    engine: str = ""
    trials: str = ""


class Answer(Value):
    """The reply of a worker: `missing` pieces, or the report of its session, which took `seconds`.

    `unfit` says why this worker cannot judge, `refusal` why none should. `host` names the folder of the pieces.
    It `ended` so many seconds after the evaluation began, by the clock of the run. A large `plan` is only in the answer
    of the first shard.
    """

    missing: tuple[str, ...] = ()
    unfit: str = ""
    refusal: str = ""
    worker: str = ""
    host: str = ""
    seconds: float = 0.0
    ended: float = 0.0
    plan: SessionPlan | None = None
    plan_hash: str = ""
    evidence: dict[str, Evidence] = Field(default_factory=dict)
    problems: dict[str, str] = Field(default_factory=dict)
    canaries: tuple[bool, ...] = ()
    plugins: tuple[str, ...] = ()
    reads: tuple[tuple[str, str], ...] = ()
    interference: tuple[tuple[str, str], ...] = ()
    opened_to_write: tuple[str, ...] = ()
    module_folders: tuple[str, ...] = ()
    plugin_files: tuple[str, ...] = ()
    replaced_tests: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    exit_status: int | None = None
    pytest_failures: int = 0
    ending: str = ""
    output: str = ""
    outputs: dict[str, str] = Field(default_factory=dict)
    trials: str = ""


def pack(value: Value) -> bytes:
    """Return a value as compressed JSON."""
    return zlib.compress(value.model_dump_json(exclude_defaults=True).encode())


def unpack(data: bytes, kind: type[AnyValue]) -> AnyValue:
    """Return the value that `pack` was given."""
    return kind.model_validate_json(zlib.decompress(data))


def describe_environment() -> Environment:
    """Return what has to be the same at a worker: interpreter, system, variables, and installed distributions."""
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {
        "Python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        **variables,
        **_read_versions(tuple((path, read_stamp(path)) for path in sys.path)),
    }


@lru_cache(maxsize=1)
def _read_versions(_stamps: tuple[object, ...]) -> dict[str, str]:
    versions = {item.name: item.version for item in metadata.distributions() if item.name}
    return {f"{name} (installed)": version for name, version in versions.items() if name not in _INSTALLERS}


def find_differences(expected: Environment, actual: Environment) -> list[str]:
    """Return a text for each value that differs."""
    return [
        f"{name} is {actual.get(name, 'missing')}, expected {expected.get(name, 'none')}"
        for name in sorted(expected.keys() | actual.keys())
        if expected.get(name) != actual.get(name)
    ]


def list_modules(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the modules at the top of a tree, or of its folder `src`."""
    names = {path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in paths if path.endswith(".py")}
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
