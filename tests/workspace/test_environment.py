"""Changes of installed packages while a run works."""

from __future__ import annotations

import json
import os
import site
import sys
import time
from pathlib import Path

import pytest

from pytest_loop.workspace.environment import find_changed_package_files, hash_site_files


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site-packages of an environment that holds one old module."""
    folder = tmp_path / "env/site-packages"
    folder.mkdir(parents=True)
    (folder / "old.py").write_text("old")
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(folder)])
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path / "none"))
    monkeypatch.setattr(sys, "path", [])
    time.sleep(0.02)  # the clock of the disk is coarse
    return folder


@pytest.fixture
def since(packages: Path) -> int:
    now = time.time_ns()
    time.sleep(0.02)
    return now


def test_new_and_edited_modules_are_named_and_bytecode_is_not(packages: Path, since: int, project: Path) -> None:
    assert find_changed_package_files(project, since) == []
    (packages / "shop.py").write_text("new")
    (packages / "lib").mkdir()
    (packages / "lib/edited.py").write_text("edited")
    (packages / "__pycache__").mkdir()
    (packages / "__pycache__/old.cpython-311.pyc").write_text("")
    assert find_changed_package_files(project, since) == [str(packages / "lib/edited.py"), str(packages / "shop.py")]
    assert find_changed_package_files(project, since, [str(packages)]) == [], "agents may install there"


def test_restored_times_do_not_hide_an_edit(packages: Path, project: Path) -> None:
    (edited := packages / "edited.py").write_text("good")
    before = edited.stat()
    time.sleep(0.02)
    since = time.time_ns()
    time.sleep(0.02)
    edited.write_text("evil")
    os.utime(edited, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find_changed_package_files(project, since) == [str(edited)]


def test_environment_without_an_older_file_is_another_one(packages: Path, project: Path) -> None:
    assert find_changed_package_files(project, 0) == []


def test_another_link_to_a_file_is_no_change(packages: Path, since: int, project: Path, tmp_path: Path) -> None:
    (tmp_path / "linked.py").hardlink_to(packages / "old.py")
    assert find_changed_package_files(project, since) == []


def test_editable_install_of_the_project_is_no_change(packages: Path, since: int, project: Path) -> None:
    (packages / "__editable__.shop.pth").write_text(f"# shop\n{project}\n{project / 'src'}\n")
    metadata = packages / "shop-1.0.dist-info"
    metadata.mkdir()
    url = {"url": project.resolve().as_uri(), "dir_info": {"editable": True}}
    (metadata / "direct_url.json").write_text(json.dumps(url))
    (metadata / "entry_points.txt").write_text("[console_scripts]\nshop = shop:main\n")
    assert find_changed_package_files(project, since) == []
    (metadata / "entry_points.txt").write_text("[pytest11]\nshop = shop\n")
    (packages / "other.pth").write_text("import evil\n")
    foreign = packages / "evil-1.0.dist-info"
    foreign.mkdir()
    (foreign / "METADATA").write_text("")
    assert find_changed_package_files(project, since) == [
        str(foreign / "METADATA"), str(packages / "other.pth"), str(metadata / "entry_points.txt"),
    ]  # fmt: skip


def test_path_file_of_the_project_is_no_part_of_the_seal(packages: Path, project: Path) -> None:
    before = hash_site_files((), project)
    (packages / "shop.pth").write_text(f"{project}\n")
    assert hash_site_files((), project) == before
    (packages / "shop.pth").write_text(f"{project}\nimport evil\n")
    assert hash_site_files((), project) != before


def test_environment_in_the_project_counts_as_a_whole(
    packages: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = project / ".venv"
    environment.mkdir()
    monkeypatch.setattr(sys, "prefix", str(environment))
    since = time.time_ns()
    time.sleep(0.02)
    (environment / "impl.py").write_text("")
    assert find_changed_package_files(project, since) == [str(environment / "impl.py")]
