"""Fixtures that create a project and call pytest in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.pytest_caller import PytestCaller

MakeProject = Callable[..., Path]
Pytest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def make_project(tmp_path: Path) -> MakeProject:
    """Create a folder `project` with these files and an ini file."""

    def make(**files: str) -> Path:
        folder = tmp_path / "project"
        folder.mkdir()
        for name, text in {"pytest_ini": "[pytest]\n", **files}.items():
            stem, _, ending = name.rpartition("_")
            (folder / f"{stem.replace('__', '.')}.{ending}").write_text(dedent(text))
        return folder

    return make


@pytest.fixture
def run(project: Path, caller: PytestCaller) -> Pytest:
    """Call pytest in the folder `project`."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return caller.call(*arguments, folder=project)

    return call
