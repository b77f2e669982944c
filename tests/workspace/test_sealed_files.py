"""Sealed files are restored and reported, whatever an agent does to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.errors import StateError
from pytest_loop.workspace.environment import hash_site_files
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.project_changes import ProjectChanges
from pytest_loop.workspace.seal import build_seal_patterns, format_path_pattern, is_test_module
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


def test_package_called_testing_is_product_and_a_folder_of_this_name_is_not() -> None:
    tests = ["testing/tests/test_a.py", "other/testing/test_b.py"]
    patterns = PathPatterns(build_seal_patterns(tests, packages={"testing"}))
    paths = ["testing/__init__.py", "testing/tests/data.json", "other/testing/data.json"]
    assert [patterns.matches(path) for path in paths] == [False, True, True]


def test_new_tests_stay_beside_sealed_ones(root: Path, project: SealedFiles) -> None:
    new = ["tests/test_new.py", "tests/unit/test_new.py", "tests/unit/conftest.py", "test_new.py"]
    new += ["tests/unit/__init__.py", "tests/unit/data/new.json", "tests/shop.test.js"]
    for name in (
        *new,
        "tests/helper.py",
        "tests/test_unit/conftest.py",
        "tests/unit/pytest.ini",
        "tests/re/__init__.py",
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("def test(): pass\n")
    (root / "tests/test_shop.py").write_text("def test(): return\n")
    assert [finding.path for finding in project.enforce_seal()] == [
        "tests/helper.py",
        "tests/test_shop.py",
        "tests/test_unit/conftest.py",
        "tests/unit/pytest.ini",
        "tests/re/__init__.py",
    ]
    assert all((root / name).exists() for name in new)
    changes = ProjectChanges(project)
    assert changes.list_new_test_modules() == ("test_new.py", "tests/test_new.py", "tests/unit/test_new.py")
    assert changes.list_new_places() == ("test_new.py", "tests/test_new.py", "tests/unit")


def test_new_test_in_a_folder_without_tests_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tests/data").mkdir(parents=True)
    (tmp_path / "tests/test_shop.py").touch()
    (tmp_path / "tests/data/prices.json").touch()
    project = make_sealed_files(tmp_path)
    project.record_start()
    (tmp_path / "tests/data/test_new.py").touch()
    assert [finding.path for finding in project.enforce_seal()] == ["tests/data/test_new.py"]
    project.close()


def test_honest_edit_of_a_sealed_file_stays(root: Path, project: SealedFiles) -> None:
    (root / "tests/test_shop.py").write_text("def test():\n    pass  # nothing\n")
    assert project.enforce_seal() == []
    assert project.compute_diff().paths == ("tests/test_shop.py",)
    assert project.list_lost_files() == ()


def test_sealed_file_is_put_back_in_the_run_of_a_document_even_if_it_means_the_same(
    root: Path, document: SealedFiles
) -> None:
    (root / "tests/test_shop.py").write_text("def test():\n    pass\n")
    assert [finding.path for finding in document.enforce_seal()] == ["tests/test_shop.py"]


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


@pytest.fixture
def document(root: Path) -> Iterator[SealedFiles]:
    """The files of a run that may change README.md alone."""
    project = make_sealed_files(root, format_path_pattern("README.md"))
    project.record_start()
    project.begin_work()
    yield project
    project.close()


def test_agent_of_a_document_changes_nothing_else_and_copies_of_its_edits_are_kept(
    root: Path, document: SealedFiles
) -> None:
    (root / "README.md").write_text("bye")
    (root / "shop.py").write_text("x = 2\n")
    (root / "docs").mkdir()
    (root / "docs/notes.md").write_text("notes")
    (root / "tests/test_shop.py").write_text("cheat")
    assert list_findings(document.enforce_seal()) == [
        ("sealed", "tests/test_shop.py", "was changed, and was put back"),
        ("allow", "docs/notes.md", "was new, and was removed"),
        ("allow", "shop.py", "was changed, and was put back"),
    ]
    assert read_files(root) == {**FILES, "README.md": "bye"}
    discarded = root / ".loop/run/discarded"
    copies = {path.relative_to(discarded).as_posix(): path.read_text() for path in discarded.rglob("*.*")}
    assert copies == {"tests/test_shop.py": "cheat", "docs/notes.md": "notes", "shop.py": "x = 2\n"}


def test_new_files_of_a_session_are_outputs_and_other_changes_of_it_are_undone(
    root: Path, document: SealedFiles
) -> None:
    proof = document.record_start()
    document.begin_work(is_session=True)
    (root / "report.xml").write_text("<1/>")
    (root / "shop.py").write_text("x = 2\n")
    (root / "tests/conftest.py").write_text("cheat")
    assert list_findings(document.enforce_seal()) == [
        ("sealed", "tests/conftest.py", "was new, and was removed"),
        ("allow", "shop.py", "was changed, and was put back"),
    ]
    document.begin_work()
    (root / "report.xml").write_text("<2/>")
    assert document.enforce_seal() == [], "an agent may run the checks itself"
    assert read_files(root) == {**FILES, "report.xml": "<2/>"}
    other = make_sealed_files(root, "/README.md")
    other.resume(proof)
    for number, is_session in enumerate((True, False)):
        other.begin_work(is_session=is_session)
        (root / "report.xml").write_text(f"<{number}/>")
        assert other.enforce_seal() == [], "also after a restart"
    other.close()


def test_ignored_files_are_no_changes(root: Path) -> None:
    (root / ".gitignore").write_text("scratch/\n*.log\n")
    document = make_sealed_files(root, "/README.md")
    document.record_start()
    document.begin_work()
    (root / "scratch").mkdir()
    for name in ("scratch/plan.txt", "agent.log"):
        (root / name).write_text("")
    (root / "__pycache__").mkdir()
    (root / "__pycache__/shop.cpython-311.pyc").write_text("")
    assert document.enforce_seal() == []
    document.close()


def test_edits_of_the_user_between_two_steps_stay(root: Path, document: SealedFiles) -> None:
    document.enforce_seal()
    (root / "shop.py").write_text("x = 2\n")
    document.accept_current()
    document.begin_work()
    (root / "shop.py").write_text("x = 3\n")
    assert list_findings(document.enforce_seal()) == [("allow", "shop.py", "was changed, and was put back")]
    assert (root / "shop.py").read_text() == "x = 2\n"
    other = make_sealed_files(root, "/README.md")
    other.resume(document.record_start())
    (root / "tests/test_shop.py").write_text("mine")
    assert [finding.path for finding in other.enforce_seal()] == ["tests/test_shop.py"], "sealed files do not"
    other.close()


def test_files_that_another_run_may_edit_stay(root: Path, document: SealedFiles) -> None:
    document.find_shared = lambda: PathPatterns(("/shop.py",))
    (root / "shop.py").write_text("x = 2\n")
    (root / "new.py").write_text("")
    assert [finding.path for finding in document.enforce_seal()] == ["new.py"]
    assert (root / "shop.py").read_text() == "x = 2\n"


def test_sources_outside_of_allow_are_not_those_of_the_change(root: Path) -> None:
    document = make_sealed_files(root, "/shop.py")
    document.record_start()
    document.begin_work(is_session=True)
    (root / "shop.py").write_text("x = 2\n")
    (root / "generated.py").write_text("")
    document.enforce_seal()
    assert [source.path for source in ProjectChanges(document).list_sources()] == ["shop.py"]
    document.close()


def test_sealed_files_that_cannot_be_put_back_are_listed(root: Path) -> None:
    (root / "tests" / "large.bin").write_bytes(b"x" * (9 * 1024 * 1024))
    project = make_sealed_files(root)
    project.record_start()
    for name in ("large.bin", "data.txt"):
        (root / "tests" / name).write_bytes(b"y")
    project.enforce_seal()
    assert project.list_lost_files() == ("tests/large.bin",)
    project.close()


def test_test_modules_are_recognised_by_name() -> None:
    names = ("test_shop.py", "shop_test.py", "shop.py", "conftest.py", "test_shop.txt")
    assert [is_test_module(name) for name in names] == [True, True, False, False, False]


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
    sources = {(source.path, source.before, source.after) for source in ProjectChanges(project).list_sources()}
    assert sources == {("new.py", None, "y = 1\n"), ("shop.py", "x = 1\n", "x = 2\n")}
    assert list(ProjectChanges(project).read_start_sources(is_sealed=False)) == ["x = 1\n"]
    assert list(ProjectChanges(project).read_start_sources(is_sealed=True)) == ["def test(): pass\n"]


def test_run_that_does_not_start_leaves_nothing(root: Path, project: SealedFiles) -> None:
    assert (root / ".loop" / "run").exists()
    project.delete_records()
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


def test_links_of_the_change_that_lead_out_of_the_project_are_listed(project: SealedFiles) -> None:
    outside = project.root.parent.resolve()
    (project.root / "inner.py").symlink_to("shop.py")
    (project.root / "outer.py").symlink_to("../outer.py")
    project.accept_current()
    assert list(ProjectChanges(project).list_outer_links()) == [("outer.py", str(outside / "outer.py"))]
