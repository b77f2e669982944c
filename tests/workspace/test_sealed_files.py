"""Sealed files are restored and reported, whatever an agent does to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.errors import StateError
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.seal import build_seal_patterns, hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles

FILES = {"shop.py": "x = 1\n", "tests/test_shop.py": "def test(): pass\n", "tests/data.txt": "data", "README.md": "hi"}
TESTS = ["tests/test_shop.py"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def make_sealed_files(root: Path, *allow: str) -> SealedFiles:
    return SealedFiles(root, root / ".loop" / "run", build_seal_patterns(TESTS), allow)


@pytest.fixture
def project(root: Path) -> Iterator[SealedFiles]:
    files = make_sealed_files(root)
    files.record_start()
    yield files
    files.close()


def read_files(root: Path) -> dict[str, str]:
    paths = (path for path in root.rglob("*") if path.is_file() and ".loop" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def list_findings(findings: list[SealFinding]) -> list[tuple[str, str, str]]:
    return [(finding.kind, finding.path, finding.detail) for finding in findings]


def test_test_folders_are_sealed_and_other_tests_alone() -> None:
    patterns = PathPatterns(
        build_seal_patterns(
            ["a/tests/unit/test_a.py", "src/test_b.py", "odd [x]/test_c.py"], ["*.golden"], ["a/tests/x"]
        )
    )
    inside = ["a/tests/data.json", "src/test_b.py", "odd [x]/test_c.py", "deep/conftest.py", "x.golden", "pytest.ini"]
    assert [path for path in inside if not patterns.matches(path)] == []
    outside = ["src/b.py", "a/other.py", "a/tests/x", "odd x/test_c.py", "src/data.json"]
    assert [path for path in outside if patterns.matches(path)] == []


def test_new_tests_are_allowed_if_tests_are_to_be_added() -> None:
    patterns = PathPatterns(build_seal_patterns(["tests/unit/test_a.py", "test_b.py"], are_tests_added=True))
    inside = ["tests/unit/test_a.py", "test_b.py", "tests/data.json", "tests/conftest.py", "tests/new/helper.py"]
    assert [path for path in inside if not patterns.matches(path)] == []
    assert not patterns.matches("tests/unit/test_new.py")
    assert not patterns.matches("new_test.py")


def test_sealed_files_are_restored_and_reported(root: Path, project: SealedFiles) -> None:
    (root / "tests/test_shop.py").write_text("cheat")
    (root / "tests/data.txt").unlink()
    (root / "tests/conftest.py").write_text("cheat")
    (root / "shop.py").write_text("x = 2\n")
    assert list_findings(project.enforce_seal()) == [
        ("sealed", "tests/conftest.py", "was new, and was removed"),
        ("sealed", "tests/data.txt", "was changed, and was put back"),
        ("sealed", "tests/test_shop.py", "was changed, and was put back"),
    ]
    assert read_files(root) == {**FILES, "shop.py": "x = 2\n"}
    assert project.enforce_seal() == []
    assert project.compute_diff().paths == ("shop.py",)


def test_files_outside_of_allow_are_restored(root: Path) -> None:
    project = make_sealed_files(root, "*.py")
    project.record_start()
    (root / "README.md").write_text("bye")
    (root / "shop.py").write_text("x = 2\n")
    assert list_findings(project.enforce_seal()) == [("allow", "README.md", "was changed, and was put back")]
    assert read_files(root) == {**FILES, "shop.py": "x = 2\n"}
    project.close()


def test_another_process_resumes_with_the_files_at_start(root: Path, project: SealedFiles) -> None:
    proof = project.record_start()
    shutil.rmtree(root / "tests")
    other = make_sealed_files(root)
    other.resume(proof)
    assert [finding.path for finding in other.enforce_seal()] == ["tests/data.txt", "tests/test_shop.py"]
    assert read_files(root) == FILES
    other.close()


def test_changed_listing_is_an_error(root: Path, project: SealedFiles) -> None:
    with pytest.raises(StateError, match="is not as this run wrote it"):
        make_sealed_files(root).resume("another hash")


def test_file_that_cannot_be_restored_is_reported(root: Path) -> None:
    (root / "tests" / "large.bin").write_bytes(b"x" * (9 * 1024 * 1024))
    project = make_sealed_files(root)
    project.record_start()
    (root / "tests" / "large.bin").write_bytes(b"y")
    assert [finding.detail for finding in project.enforce_seal()] == [
        "was changed, and cannot be put back: its content was not kept"
    ]
    project.close()


def test_files_of_an_iteration_are_restored(root: Path, project: SealedFiles) -> None:
    project.enforce_seal()
    project.save_checkpoint(1)
    first = project.digest
    (root / "shop.py").write_text("x = 2\n")
    (root / "new.py").write_text("")
    project.enforce_seal()
    project.save_checkpoint(2)
    result = project.restore_checkpoint(1, first)
    assert (result.restored, result.removed) == (("shop.py",), ("new.py",))
    assert read_files(root) == FILES
    with pytest.raises(StateError, match="the files of iteration 2 are not kept"):
        project.restore_checkpoint(2, first)
    with pytest.raises(StateError, match="the files of iteration 3 are not kept"):
        project.restore_checkpoint(3, first)


def test_changed_sources_are_those_of_the_product(root: Path, project: SealedFiles) -> None:
    (root / "shop.py").write_text("x = 2\n")
    (root / "new.py").write_text("y = 1\n")
    (root / "notes.md").write_text("")
    project.enforce_seal()
    sources = {(source.path, source.before, source.after) for source in project.list_changed_sources()}
    assert sources == {("new.py", None, "y = 1\n"), ("shop.py", "x = 1\n", "x = 2\n")}
    assert list(project.read_product_sources()) == ["x = 1\n"]
    assert list(project.read_sealed_sources()) == ["def test(): pass\n"]


def test_run_that_does_not_start_leaves_nothing(root: Path, project: SealedFiles) -> None:
    assert (root / ".loop" / "run").exists()
    project.discard()
    assert not (root / ".loop").exists()


def test_files_loaded_at_interpreter_startup_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path), str(tmp_path / "none")])
    monkeypatch.setattr("site.getusersitepackages", lambda: str(tmp_path))
    empty = hash_site_files()
    (tmp_path / "other.py").write_text("")
    assert hash_site_files() == empty
    (tmp_path / "a.pth").write_text("import os")
    first = hash_site_files()
    (tmp_path / "a.pth").write_text("import sys")
    assert len({empty, first, hash_site_files()}) == 3


def test_deleted_run_folder_is_written_again(root: Path, project: SealedFiles) -> None:
    proof = project.record_start()
    project.save_checkpoint(1)
    first = project.digest
    shutil.rmtree(root / ".loop")
    (root / "tests/test_shop.py").write_text("cheat")
    assert [finding.path for finding in project.enforce_seal()] == ["tests/test_shop.py"]
    other = make_sealed_files(root)
    other.resume(proof)
    (root / "shop.py").write_text("x = 2\n")
    shutil.rmtree(root / ".loop")
    assert other.enforce_seal() == []
    third = make_sealed_files(root)
    third.resume(proof)
    (root / "tests/data.txt").unlink()
    assert [finding.detail for finding in third.enforce_seal()] == ["was changed, and was put back"]
    project.enforce_seal()
    assert project.restore_checkpoint(1, first).restored == ("shop.py",)
    assert read_files(root) == FILES
    other.close()
    third.close()


def test_edited_listing_is_written_again(root: Path, project: SealedFiles) -> None:
    proof = project.record_start()
    (root / ".loop" / "run" / "files.json").write_text("{}")
    project.enforce_seal()
    other = make_sealed_files(root)
    other.resume(proof)
    other.close()


def test_diff_of_one_iteration_excludes_earlier_changes(root: Path, project: SealedFiles) -> None:
    (root / "shop.py").write_text("x = 2\n")
    project.enforce_seal()
    before = project.save_current()
    (root / "shop.py").write_text("x = 2\ny = 3\n")
    project.enforce_seal()
    assert project.render_diff(before, 1000).splitlines()[2:] == ["@@ -1 +1,2 @@", " x = 2", "+y = 3"]
    assert project.render_diff(project.current, 1000) == ""
