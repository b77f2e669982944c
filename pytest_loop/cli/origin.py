"""How a run was started, for its report."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_loop.core.model.run_setup import Origin
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_repository import GitRepository

_PACKAGES = ("pytest-agent-loop", "pytest", "pytest-xdist")


def describe_origin(root: Path, arguments: Sequence[str]) -> Origin:
    """Return the command line without secrets, the commit that is checked out, and versions."""
    return Origin(
        command=Redactor(os.environ)(f"pytest {shlex.join(arguments)}"),
        revision=_find_revision(root),
        versions={"Python": platform.python_version()} | {name: find_version(name) for name in _PACKAGES},
    )


def _find_revision(root: Path) -> str:
    """Return the commit that is checked out, or an empty text without git."""
    try:
        return GitRepository.find(root).read_head()
    except (GitError, OSError):
        return ""


def find_version(name: str) -> str:
    """Return the version of an installed package, or `unknown`."""
    try:
        return version(name)
    except PackageNotFoundError:  # a source tree on the path
        return "unknown"
