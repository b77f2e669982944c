"""Whatever an agent does to a file, it can be restored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.content_archive import ContentArchive, RestoreResult
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileChanges, FileTree, compare_trees
from pytest_loop.workspace.path_patterns import PathPatterns

Write = Callable[..., Path]
SCOPE = ScanScope()


@pytest.fixture
def archive(project: Path) -> Iterator[ContentArchive]:
    with closing(ContentArchive(project / ".loop" / "guide" / "before.bin")) as archive:
        yield archive


def _undo(root: Path, archive: ContentArchive, before: FileTree) -> RestoreResult:
    after = scan_files(root, SCOPE, before)
    return archive.undo_changes(root, before, after, compare_trees(before, after))


def _delete(path: Path) -> None:
    path.unlink()


def _edit(path: Path) -> None:
    path.write_text("cheat")


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "file").write_text("x")
    (path / "deep").chmod(0)


def _replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent.parent / "outside")


def _replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _make_executable(path: Path) -> None:
    path.chmod(0o755)


def _replace_folder_by_file(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("x")


def _replace_folder_by_link(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.symlink_to(path.parent.parent.parent / "elsewhere")


def _replace_folder_by_pipe(path: Path) -> None:
    shutil.rmtree(path.parent)
    os.mkfifo(path.parent)


def _remove_everything(path: Path) -> None:
    for folder in path.parent.parent.iterdir():
        shutil.rmtree(folder)


def _make_folder_read_only(path: Path) -> None:
    path.write_text("cheat")
    path.parent.chmod(0o500)


@pytest.mark.parametrize(
    "attack",
    [
        _delete, _edit, _replace_by_folder, _replace_by_link, _replace_by_pipe, _make_executable, _replace_folder_by_file,
        _replace_folder_by_link, _replace_folder_by_pipe, _remove_everything, _make_folder_read_only,
    ],
)  # fmt: skip
def test_file_is_restored_exactly_and_nothing_outside_is_touched(
    project: Path, tmp_path: Path, write: Write, archive: ContentArchive, attack: Callable[[Path], None]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "test_a.py").write_text("precious")
    (tmp_path / "outside").write_text("precious")
    path = write("tests/test_a.py", b"assert 1\r\n\xff", 0o640)
    before = scan_files(project, SCOPE)
    assert archive.add_files(project, before, PathPatterns(["tests/"])) == ()
    attack(path)
    result = _undo(project, archive, before)
    assert result.restored == ("tests/test_a.py",)
    assert result.lost == ()
    assert path.read_bytes() == b"assert 1\r\n\xff"
    assert path.stat().st_mode & 0o777 == 0o640
    after = scan_files(project, SCOPE, before)
    assert after.digest == before.digest
    assert after.folders == before.folders
    assert (tmp_path / "elsewhere" / "test_a.py").read_text() == "precious"
    assert (tmp_path / "outside").read_text() == "precious"


def test_new_files_are_removed_with_their_folders_and_old_empty_folders_stay(
    project: Path, write: Write, archive: ContentArchive
) -> None:
    write("src/a.py")
    (project / "empty").mkdir()
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    write("new/deep/b.py")
    write("src/c.py")
    write("empty/d.py")
    result = _undo(project, archive, before)
    assert result == RestoreResult(removed=("empty/d.py", "new/deep/b.py", "src/c.py"))
    assert sorted(path.name for path in project.iterdir()) == [".loop", "empty", "src"]


def test_link_is_restored_and_not_written_through(
    project: Path, tmp_path: Path, write: Write, archive: ContentArchive
) -> None:
    (tmp_path / "outside").write_text("precious")
    (project / "link").symlink_to(tmp_path / "outside")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    (project / "link").unlink()
    write("link", "cheat")
    assert _undo(project, archive, before).restored == ("link",)
    assert (project / "link").readlink() == tmp_path / "outside"
    assert (tmp_path / "outside").read_text() == "precious"


def test_any_name_is_restored_or_removed(project: Path, write: Write, archive: ContentArchive, odd_name: bytes) -> None:
    write(odd_name, "one")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    write(odd_name, "two")
    write(b"new/" + odd_name)
    result = _undo(project, archive, before)
    assert (result.restored, result.removed) == ((os.fsdecode(odd_name),), (os.fsdecode(b"new/" + odd_name),))
    assert scan_files(project, SCOPE, before).digest == before.digest


def test_only_the_selected_changes_are_undone(project: Path, write: Write, archive: ContentArchive) -> None:
    write("src/a.py", "old")
    write("tests/test_a.py", "old")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    write("src/a.py", "new")
    write("tests/test_a.py", "new")
    after = scan_files(project, SCOPE, before)
    stray = compare_trees(before, after).exclude(PathPatterns(["src/"]))
    assert archive.undo_changes(project, before, after, stray) == RestoreResult(restored=("tests/test_a.py",))
    assert (project / "src" / "a.py").read_text() == "new"


def test_contents_outlive_the_folder_of_the_run(project: Path, write: Write, archive: ContentArchive) -> None:
    write("a.py", "old")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    shutil.rmtree(project / ".loop")
    write("a.py", "new")
    assert _undo(project, archive, before).restored == ("a.py",)


def test_sealed_contents_outlive_an_overwritten_archive(project: Path, write: Write, archive: ContentArchive) -> None:
    write("conftest.py", "old")
    write("other.py", "other")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before, PathPatterns(["conftest.py"]))
    archive.path.write_bytes(b"x" * archive.path.stat().st_size)
    write("conftest.py", "new")
    write("other.py", "new")
    result = _undo(project, archive, before)
    assert result.restored == ("conftest.py",)
    assert result.lost == (("other.py", "its content was not kept"),)
    assert (project / "other.py").read_text() == "new", "nothing is written that was not kept"


def test_another_process_reads_the_archive_and_cuts_a_torn_end(
    project: Path, write: Write, archive: ContentArchive
) -> None:
    write("a.py", "old")
    write("empty", "")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    archive.close()
    data = archive.path.read_bytes()
    archive.path.write_bytes(data + b"torn" * 20)
    with closing(ContentArchive(archive.path)) as other:
        assert other.get_content(before.entries["a.py"].digest) == b"old"
        assert other.get_content(before.entries["empty"].digest) == b""
        assert other.add_files(project, before) == ()
    assert archive.path.read_bytes() == data
    assert archive.path.stat().st_mode & 0o777 == 0o600


def test_equal_contents_are_archived_once(project: Path, write: Write, archive: ContentArchive) -> None:
    for number in range(9):
        write(f"{number}", "same" * 1000)
    archive.add_files(project, scan_files(project, SCOPE))
    assert archive.path.stat().st_size == 40 + 4000


def test_files_that_are_too_large_or_changed_are_reported(project: Path, write: Write) -> None:
    write("large", "x" * 101)
    write("small", "x" * 100)
    write("changed", "x")
    os.mkfifo(project / "pipe")
    tree = scan_files(project, SCOPE)
    write("changed", "y")
    with closing(ContentArchive(project / ".loop" / "before.bin", max_size=100)) as archive:
        assert archive.add_files(project, tree) == ("changed", "large", "pipe")


def test_sealed_files_come_first_if_the_archive_is_full(project: Path, write: Write) -> None:
    write("a", "a" * 100)
    write("z", "z" * 100)
    tree = scan_files(project, SCOPE)
    with closing(ContentArchive(project / ".loop" / "before.bin", max_total=200)) as archive:
        assert archive.add_files(project, tree, PathPatterns(["z"])) == ("a",)
    with closing(ContentArchive(project / ".loop" / "none.bin", max_total=0)) as archive:
        assert archive.add_files(project, tree, PathPatterns(["z"])) == ("a",), "the sealed one is in memory"


def test_content_that_was_not_archived_is_none(project: Path, archive: ContentArchive) -> None:
    assert archive.get_content("00" * 32) is None
    archive.path.parent.mkdir(parents=True)
    os.mkfifo(archive.path)
    assert archive.get_content("00" * 32) is None
    with pytest.raises(StateError, match=r"cannot write .*before\.bin: it is not a file"):
        archive.add_files(project, scan_files(project, SCOPE))


def test_pipe_is_not_restored(project: Path, archive: ContentArchive) -> None:
    os.mkfifo(project / "pipe")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    (project / "pipe").unlink()
    assert _undo(project, archive, before).lost == (("pipe", "it was no file"),)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", "./a", "a\0b"])
def test_path_outside_of_the_project_is_an_error(project: Path, path: str) -> None:
    with pytest.raises(StateError, match="expected the path of a file beneath the project"):
        file_writer.write_file(project, path, b"", 0o644)
    with pytest.raises(StateError, match="expected the path of a file beneath the project"):
        file_writer.remove_path(project, path)


def test_removing_a_missing_file_does_nothing_and_follows_no_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("precious")
    (project / "link").symlink_to(tmp_path / "outside")
    for path in ("none", "none/none", "link/file"):
        file_writer.remove_path(project, path)
    assert (tmp_path / "outside" / "file").exists()


def test_failed_write_leaves_no_draft_and_the_old_file(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.py", "old")

    def fail(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(StateError, match=r"cannot put back .*a\.py: No space left on device; make room on the disk"):
        file_writer.write_file(project, "a.py", b"new", 0o644)
    assert [path.name for path in project.iterdir()] == ["a.py"]
    assert (project / "a.py").read_text() == "old"


@pytest.mark.parametrize("mode", [0o500, 0o300, 0o000])
def test_folders_without_permissions_are_made_accessible(own_folder: Path, mode: int) -> None:
    tests = own_folder / "tests"
    tests.mkdir()
    tests.chmod(mode)
    file_writer.write_file(own_folder, "tests/a.py", b"back", 0o644)
    assert (tests / "a.py").read_bytes() == b"back"
    tests.chmod(mode)
    file_writer.write_file(own_folder, "tests/deep/a.py", b"back", 0o644)
    (tests / "deep").chmod(mode)
    tests.chmod(0o500)
    file_writer.remove_path(own_folder, "tests/deep")
    assert [path.name for path in tests.iterdir()] == ["a.py"]


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_obstacle_in_place_of_a_folder_is_removed(project: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "outside").mkdir()
    obstacle = project / "tests"
    if kind == "file":
        obstacle.write_text("x")
    elif kind == "link":
        obstacle.symlink_to(tmp_path / "outside")
    else:
        os.mkfifo(obstacle)
    file_writer.write_file(project, "tests/deep/a.py", b"back", 0o644)
    assert (obstacle / "deep" / "a.py").read_bytes() == b"back"
    assert list((tmp_path / "outside").iterdir()) == []


def test_name_that_is_too_long_is_an_error(project: Path) -> None:
    with pytest.raises(StateError, match=r"cannot put back .*: File name too long"):
        file_writer.write_file(project, f"{'x' * 300}/a", b"", 0o644)


def test_file_that_cannot_be_removed_is_an_error(own_folder: Path) -> None:
    (own_folder / "closed" / "deep").mkdir(parents=True)
    (own_folder / "closed").chmod(0)
    with pytest.raises(StateError, match=r"cannot remove .*closed/deep: Permission denied; give this user access"):
        file_writer.remove_path(own_folder, "closed/deep")
    (own_folder / "closed").chmod(0o700)


def test_folder_of_another_user_is_an_error(own_folder: Path) -> None:
    with pytest.raises(
        StateError, match=r"cannot put back .*: (Permission denied|Operation not permitted); give this user"
    ):
        file_writer.write_file(Path("/"), "etc/pytest-loop/none", b"", 0o644)


def test_files_and_folders_that_swapped_places_are_restored(
    project: Path, write: Write, archive: ContentArchive
) -> None:
    write("a", "file")
    write("b/c", "inner")
    before = scan_files(project, SCOPE)
    archive.add_files(project, before)
    (project / "a").unlink()
    shutil.rmtree(project / "b")
    write("a/x/y", "now a folder")
    write("b", "now a file")
    assert compare_trees(before, scan_files(project, SCOPE, before)) == FileChanges(("a/x/y", "b"), ("a", "b/c"))
    assert _undo(project, archive, before).lost == ()
    assert scan_files(project, SCOPE, before).digest == before.digest
