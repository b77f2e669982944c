"""What an interpreter would import in the place of something installed, if it were started beside a new file."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import compare_trees
from pytest_loop.workspace.seal import build_seal_patterns, select_shadowing_files
from pytest_loop.workspace.sealed_files import SealedFiles


@pytest.mark.parametrize(
    ("path", "hides"),
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
def test_only_where_something_could_be_started(tmp_path: Path, path: str, hides: bool) -> None:
    for name in ("shop/__init__.py", "tools/check.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    start = scan_files(tmp_path, ScanScope())
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    found = compare_trees(start, scan_files(tmp_path, ScanScope(), start))
    assert found.added == (path,)
    assert select_shadowing_files(tmp_path, start, found).added == ((path,) if hides else ())


def test_modules_of_the_project_itself_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/cart.py").touch()
    (tmp_path / "here/lib").mkdir(parents=True)
    (tmp_path / "here/lib/tool.py").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "here"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "src"), str(tmp_path / "here/lib"), ""])
    start = scan_files(tmp_path, ScanScope())
    (tmp_path / "cart.py").touch()
    (tmp_path / "tool.py").touch()
    found = compare_trees(start, scan_files(tmp_path, ScanScope(), start))
    assert select_shadowing_files(tmp_path, start, found).added == ("tool.py",)


@pytest.mark.parametrize(("unsealed", "stays"), [((), False), (("!json.py",), True)], ids=["sealed", "unsealed"])
def test_it_is_removed_unless_somebody_has_unsealed_it(tmp_path: Path, unsealed: tuple[str, ...], stays: bool) -> None:
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", ("conftest.py", *unsealed))
    project.record_start()
    (tmp_path / "json.py").touch()
    found = [(one.kind, one.path, one.detail) for one in project.enforce_seal()]
    assert found == ([] if stays else [("sealed", "json.py", "was new, and was removed")])
    assert (tmp_path / "json.py").exists() is stays
    project.close()


def test_a_compiled_module_is_seen_though_git_ignores_it(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.py[cod]\n")
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", build_seal_patterns(()))
    project.record_start()
    (tmp_path / "__pycache__").mkdir()
    for name in ("json.pyc", "__pycache__/shop.cpython-311.pyc"):
        (tmp_path / name).touch()
    assert [one.path for one in project.enforce_seal()] == ["json.pyc"]
    assert not (tmp_path / "json.pyc").exists()
    project.close()
