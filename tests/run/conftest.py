from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import OPEN_PROJECTS


@pytest.fixture(autouse=True)
def _close_projects() -> Iterator[None]:
    yield
    while OPEN_PROJECTS:
        OPEN_PROJECTS.pop().close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SealedFiles]:
    """A project with a product and a sealed test, without git."""
    (tmp_path / "shop.py").write_text("colour = 'red'\n")
    (tmp_path / "test_shop.py").write_text("import shop\n")
    project = SealedFiles(tmp_path, tmp_path / ".loop" / "guide", ["test_*.py"])
    project.record_start()
    yield project
    project.close()


@pytest.fixture
def git_project(project: SealedFiles) -> SealedFiles:
    """The project in a git repository."""
    (project.root / ".gitignore").write_text(".loop/\n")
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for arguments in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *arguments], cwd=project.root, check=True)
    return project
