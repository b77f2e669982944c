"""New files that shadow installed modules are removed."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from pytest_loop.workspace.environment import hash_site_files
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import compare_trees
from pytest_loop.workspace.new_files import select_shadowing_files
from pytest_loop.workspace.seal import build_seal_patterns
from pytest_loop.workspace.sealed_files import SealedFiles


@pytest.mark.parametrize(
    ("path", "is_shadowing"),
    [
        ("pytest.py", True),
        ("json.py", True),
        ("pluggy/__init__.py", True),
        ("random.pyc", True),
        (f"yaml{EXTENSION_SUFFIXES[0]}", True),
        ("yaml.another-3.so", False),
        ("tools/json.py", True),
        ("tools/pytest/__init__.py", True),
        ("shop/json.py", False),
        ("shop/deeper/json.py", False),
        ("new/json.py", False),
        ("new/__init__.py", False),
        ("pytest.txt", False),
        ("pytest/plain.py", False),
        ("cart.py", False),
        ("cart/__init__.py", False),
    ],
)
def test_only_files_in_existing_folders_outside_of_packages_shadow_modules(
    tmp_path: Path, path: str, is_shadowing: bool
) -> None:
    for name in ("shop/__init__.py", "tools/check.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    start = scan_files(tmp_path, ScanScope())
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    changes = compare_trees(start, scan_files(tmp_path, ScanScope(), start))
    assert changes.added == (path,)
    assert select_shadowing_files(tmp_path, start, changes).added == ((path,) if is_shadowing else ())


def test_modules_of_the_project_are_not_shadowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/cart.py").touch()
    (tmp_path / "here/lib").mkdir(parents=True)
    (tmp_path / "here/lib/tool.py").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "here"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "src"), str(tmp_path / "here/lib"), ""])
    start = scan_files(tmp_path, ScanScope())
    (tmp_path / "cart.py").touch()
    (tmp_path / "tool.py").touch()
    changes = compare_trees(start, scan_files(tmp_path, ScanScope(), start))
    assert select_shadowing_files(tmp_path, start, changes).added == ("tool.py",)


@pytest.mark.parametrize(("unsealed", "stays"), [((), False), (("!json.py",), True)], ids=["sealed", "unsealed"])
def test_shadowing_module_is_removed_unless_it_is_unsealed(
    tmp_path: Path, unsealed: tuple[str, ...], stays: bool
) -> None:
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", ("conftest.py", *unsealed))
    project.record_start()
    (tmp_path / "json.py").touch()
    findings = [(finding.kind, finding.path, finding.detail) for finding in project.enforce_seal()]
    assert findings == ([] if stays else [("sealed", "json.py", "was new, and was removed")])
    assert (tmp_path / "json.py").exists() is stays
    project.close()


def test_compiled_module_that_git_ignores_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.py[cod]\n")
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", build_seal_patterns(()))
    project.record_start()
    (tmp_path / "__pycache__").mkdir()
    for name in ("json.pyc", "__pycache__/shop.cpython-311.pyc"):
        (tmp_path / name).touch()
    assert [finding.path for finding in project.enforce_seal()] == ["json.pyc"]
    assert not (tmp_path / "json.pyc").exists()
    project.close()


@pytest.mark.parametrize(
    ("path", "is_shadowing"),
    [
        ("helpers/__init__.py", True),
        ("src/support.py", True),
        ("lib/support.py", False),
        ("lib/json.py", False),
        ("json.py", True),
        ("src/cart.py", False),
    ],
)
def test_module_that_takes_the_place_of_a_sealed_one_is_found_where_modules_are_searched(
    tmp_path: Path, path: str, is_shadowing: bool
) -> None:
    for name in ("helpers.py", "tests/support.py", "src/shop.py", "lib/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    sealed = ("/helpers.py", "/tests/")
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", sealed)
    project.record_start()
    project.module_folders = (".", "src", "tests")
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).touch()
    assert [finding.path for finding in project.enforce_seal()] == ([path] if is_shadowing else [])
    project.close()


def test_metadata_that_names_a_plugin_changes_the_hash_of_the_environment(tmp_path: Path) -> None:
    before = hash_site_files((), tmp_path)
    metadata = tmp_path / "src/evil.egg-info/entry_points.txt"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("[console_scripts]\nevil = evil\n")
    assert hash_site_files((), tmp_path) == before
    metadata.write_text("[pytest11]\nevil = evil\n")
    assert hash_site_files((), tmp_path) != before
