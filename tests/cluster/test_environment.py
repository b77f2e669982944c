"""Environments that workers build from the files of a project."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from pytest_loop.cluster import environment, tree
from tests.cluster.story import make_wheel

PROJECT = """
[project]
name = "shop"
version = "1.0"
requires-python = ">=3.10"
dependencies = ["links @ {address}"]

[dependency-groups]
test = ["more @ {more}"]
"""


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "store"))
    tree.make_folders()


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("uv"), reason="the program uv is not installed")
def test_a_lock_is_installed_with_its_groups_and_without_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    text = PROJECT.format(address=make_wheel(tmp_path, "links"), more=make_wheel(tmp_path, "more"))
    (project / "pyproject.toml").write_text(text)
    subprocess.run(["uv", "lock", "--offline"], cwd=project, check=True, capture_output=True)
    (project / "shop.py").write_text("RATE = 19\n")
    names = environment.select_files(path.name for path in project.iterdir())
    assert names == ["pyproject.toml", "uv.lock"]
    contents = {name: (project / name).read_bytes() for name in names}
    tree.store_pieces({tree.compute_hash(data): data for data in contents.values()})
    files = {name: tree.compute_hash(data) for name, data in contents.items()}
    python = environment.build_environment(files, platform.python_version())
    script = "from importlib.metadata import distributions; print(*sorted(item.name for item in distributions()))"
    output = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout
    assert output.split() == ["links", "more"]
    assert environment.build_environment(files, platform.python_version()) == python


def test_what_was_not_used_for_days_is_deleted(tmp_path: Path) -> None:
    """A tree is deleted after two days, an environment after a week; their locks stay."""
    for name, days in (("trees/old-1", 3), ("trees/new-1", 1), ("environments/used", 6), ("environments/unused", 8)):
        folder = tree.find_base() / name
        (folder / "bin").mkdir(parents=True)
        folder.with_name(f"{folder.name}.lock").touch()
        for path in (folder, folder.with_name(f"{folder.name}.lock")):
            os.utime(path, times=2 * (time.time() - days * 24 * 3600,))
    with tree.claim_tree(str(tmp_path / "project")):
        folders = {path.name for path in tree.find_base().glob("*/*") if path.is_dir()}
    assert {"new-1", "used"} <= folders
    assert not {"old-1", "unused"} & folders
    assert len(list(tree.find_base().glob("*/*.lock"))) == 5
