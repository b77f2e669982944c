"""Whatever an agent does to a file, it can be put back as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
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
def kept(project: Path) -> Iterator[ContentArchive]:
    with ContentArchive(project / ".loop" / "guide" / "before.bin") as found:
        yield found


def _undone(root: Path, kept: ContentArchive, before: FileTree) -> RestoreResult:
    after = scan_files(root, SCOPE, before)
    return kept.undo_changes(root, before, after, compare_trees(before, after))


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


def _make_it_run(path: Path) -> None:
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
    for one in path.parent.parent.iterdir():
        shutil.rmtree(one)


def _close_the_folder(path: Path) -> None:
    path.write_text("cheat")
    path.parent.chmod(0o500)


@pytest.mark.parametrize(
    "attack",
    [
        _delete, _edit, _replace_by_folder, _replace_by_link, _replace_by_pipe, _make_it_run, _replace_folder_by_file,
        _replace_folder_by_link, _replace_folder_by_pipe, _remove_everything, _close_the_folder,
    ],
)  # fmt: skip
def test_file_comes_back_as_it_was_and_nothing_outside_is_touched(
    project: Path, tmp_path: Path, write: Write, kept: ContentArchive, attack: Callable[[Path], None]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "test_a.py").write_text("precious")
    (tmp_path / "outside").write_text("precious")
    path = write("tests/test_a.py", b"assert 1\r\n\xff", 0o640)
    before = scan_files(project, SCOPE)
    assert kept.add_files(project, before, PathPatterns(["tests/"])) == ()
    attack(path)
    done = _undone(project, kept, before)
    assert done.restored == ("tests/test_a.py",)
    assert done.lost == ()
    assert path.read_bytes() == b"assert 1\r\n\xff"
    assert path.stat().st_mode & 0o777 == 0o640
    after = scan_files(project, SCOPE, before)
    assert after.digest == before.digest
    assert after.folders == before.folders
    assert (tmp_path / "elsewhere" / "test_a.py").read_text() == "precious"
    assert (tmp_path / "outside").read_text() == "precious"


def test_new_files_go_with_their_folders_and_empty_folders_of_before_stay(
    project: Path, write: Write, kept: ContentArchive
) -> None:
    write("src/a.py")
    (project / "empty").mkdir()
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    write("new/deep/b.py")
    write("src/c.py")
    write("empty/d.py")
    done = _undone(project, kept, before)
    assert done == RestoreResult(removed=("empty/d.py", "new/deep/b.py", "src/c.py"))
    assert sorted(one.name for one in project.iterdir()) == [".loop", "empty", "src"]


def test_link_comes_back_and_is_not_written_through(
    project: Path, tmp_path: Path, write: Write, kept: ContentArchive
) -> None:
    (tmp_path / "outside").write_text("precious")
    (project / "link").symlink_to(tmp_path / "outside")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    (project / "link").unlink()
    write("link", "cheat")
    assert _undone(project, kept, before).restored == ("link",)
    assert (project / "link").readlink() == tmp_path / "outside"
    assert (tmp_path / "outside").read_text() == "precious"


def test_any_name_comes_back_and_any_new_name_goes(
    project: Path, write: Write, kept: ContentArchive, odd_name: bytes
) -> None:
    write(odd_name, "one")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    write(odd_name, "two")
    write(b"new/" + odd_name)
    done = _undone(project, kept, before)
    assert (done.restored, done.removed) == ((os.fsdecode(odd_name),), (os.fsdecode(b"new/" + odd_name),))
    assert scan_files(project, SCOPE, before).digest == before.digest


def test_only_the_asked_part_is_put_back(project: Path, write: Write, kept: ContentArchive) -> None:
    write("src/a.py", "old")
    write("tests/test_a.py", "old")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    write("src/a.py", "new")
    write("tests/test_a.py", "new")
    after = scan_files(project, SCOPE, before)
    stray = compare_trees(before, after).exclude(PathPatterns(["src/"]))
    assert kept.undo_changes(project, before, after, stray) == RestoreResult(restored=("tests/test_a.py",))
    assert (project / "src" / "a.py").read_text() == "new"


def test_contents_outlive_the_folder_of_the_run(project: Path, write: Write, kept: ContentArchive) -> None:
    write("a.py", "old")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    shutil.rmtree(project / ".loop")
    write("a.py", "new")
    assert _undone(project, kept, before).restored == ("a.py",)


def test_what_is_sealed_outlives_even_an_overwritten_store(project: Path, write: Write, kept: ContentArchive) -> None:
    write("conftest.py", "old")
    write("other.py", "other")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before, PathPatterns(["conftest.py"]))
    kept.path.write_bytes(b"x" * kept.path.stat().st_size)
    write("conftest.py", "new")
    write("other.py", "new")
    done = _undone(project, kept, before)
    assert done.restored == ("conftest.py",)
    assert done.lost == (("other.py", "its content was not kept"),)
    assert (project / "other.py").read_text() == "new", "nothing is written that was not kept"


def test_another_process_finds_what_was_kept_and_cuts_what_a_crash_left(
    project: Path, write: Write, kept: ContentArchive
) -> None:
    write("a.py", "old")
    write("empty", "")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    kept.close()
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole + b"torn" * 20)
    with ContentArchive(kept.path) as other:
        assert other.get_content(before.entries["a.py"].digest) == b"old"
        assert other.get_content(before.entries["empty"].digest) == b""
        assert other.add_files(project, before) == ()
    assert kept.path.read_bytes() == whole
    assert kept.path.stat().st_mode & 0o777 == 0o600


def test_equal_contents_are_kept_once(project: Path, write: Write, kept: ContentArchive) -> None:
    for number in range(9):
        write(f"{number}", "same" * 1000)
    kept.add_files(project, scan_files(project, SCOPE))
    assert kept.path.stat().st_size == 40 + 4000


def test_what_is_too_large_or_changes_meanwhile_is_named(project: Path, write: Write) -> None:
    write("large", "x" * 101)
    write("small", "x" * 100)
    write("changed", "x")
    os.mkfifo(project / "pipe")
    tree = scan_files(project, SCOPE)
    write("changed", "y")
    with ContentArchive(project / ".loop" / "before.bin", max_size=100) as kept:
        assert kept.add_files(project, tree) == ("changed", "large", "pipe")


def test_where_room_ends_the_sealed_come_first(project: Path, write: Write) -> None:
    write("a", "a" * 100)
    write("z", "z" * 100)
    tree = scan_files(project, SCOPE)
    with ContentArchive(project / ".loop" / "before.bin", max_total=200) as kept:
        assert kept.add_files(project, tree, PathPatterns(["z"])) == ("a",)
    with ContentArchive(project / ".loop" / "none.bin", max_total=0) as kept:
        assert kept.add_files(project, tree, PathPatterns(["z"])) == ("a",), "the sealed one is in memory"


def test_nothing_kept_is_nothing_found(project: Path, kept: ContentArchive) -> None:
    assert kept.get_content("00" * 32) is None
    kept.path.parent.mkdir(parents=True)
    os.mkfifo(kept.path)
    assert kept.get_content("00" * 32) is None
    with pytest.raises(StateError, match=r"cannot write .*before\.bin: it is not a file"):
        kept.add_files(project, scan_files(project, SCOPE))


def test_pipe_is_not_put_back(project: Path, kept: ContentArchive) -> None:
    os.mkfifo(project / "pipe")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    (project / "pipe").unlink()
    assert _undone(project, kept, before).lost == (("pipe", "it was no file"),)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", "./a", "a\0b"])
def test_nothing_is_put_outside_of_the_project(project: Path, path: str) -> None:
    with pytest.raises(StateError, match="expected the path of a file beneath the project"):
        file_writer.write_file(project, path, b"", 0o644)
    with pytest.raises(StateError, match="expected the path of a file beneath the project"):
        file_writer.remove_path(project, path)


def test_removing_what_is_not_there_does_nothing_and_not_through_a_link(project: Path, tmp_path: Path) -> None:
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

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StateError, match=r"cannot put back .*a\.py: No space left on device; make room on the disk"):
        file_writer.write_file(project, "a.py", b"new", 0o644)
    assert [one.name for one in project.iterdir()] == ["a.py"]
    assert (project / "a.py").read_text() == "old"


@pytest.mark.parametrize("mode", [0o500, 0o300, 0o000])
def test_closed_folders_are_opened_for_what_belongs_there(own_folder: Path, mode: int) -> None:
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
    assert [one.name for one in tests.iterdir()] == ["a.py"]


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_stands_in_the_way_of_a_folder_goes(project: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "outside").mkdir()
    way = project / "tests"
    if kind == "file":
        way.write_text("x")
    elif kind == "link":
        way.symlink_to(tmp_path / "outside")
    else:
        os.mkfifo(way)
    file_writer.write_file(project, "tests/deep/a.py", b"back", 0o644)
    assert (way / "deep" / "a.py").read_bytes() == b"back"
    assert list((tmp_path / "outside").iterdir()) == []


def test_name_that_no_disk_takes_is_named(project: Path) -> None:
    with pytest.raises(StateError, match=r"cannot put back .*: File name too long"):
        file_writer.write_file(project, f"{'x' * 300}/a", b"", 0o644)


def test_what_may_not_be_removed_is_named(own_folder: Path) -> None:
    (own_folder / "closed" / "deep").mkdir(parents=True)
    (own_folder / "closed").chmod(0)
    with pytest.raises(StateError, match=r"cannot remove .*closed/deep: Permission denied; give this user access"):
        file_writer.remove_path(own_folder, "closed/deep")
    (own_folder / "closed").chmod(0o700)


def test_folder_that_belongs_to_somebody_else_is_named(own_folder: Path) -> None:
    with pytest.raises(
        StateError, match=r"cannot put back .*: (Permission denied|Operation not permitted); give this user"
    ):
        file_writer.write_file(Path("/"), "etc/pytest-loop/none", b"", 0o644)


def test_whole_change_is_undone_whatever_was_put_where(project: Path, write: Write, kept: ContentArchive) -> None:
    write("a", "file")
    write("b/c", "inner")
    before = scan_files(project, SCOPE)
    kept.add_files(project, before)
    (project / "a").unlink()
    shutil.rmtree(project / "b")
    write("a/x/y", "now a folder")
    write("b", "now a file")
    assert compare_trees(before, scan_files(project, SCOPE, before)) == FileChanges(("a/x/y", "b"), ("a", "b/c"))
    assert _undone(project, kept, before).lost == ()
    assert scan_files(project, SCOPE, before).digest == before.digest
