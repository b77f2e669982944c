"""A tree that is kept between evaluations has exactly the files of the list."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.cluster import tree
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree, make_stamp


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a script, a link and an empty folder; its pieces are stored."""
    (tmp_path / "store").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "store"))
    project = tmp_path / "project"
    (project / "src" / "empty").mkdir(parents=True)
    (project / "src" / "shop.py").write_text("RATE = 19\n")
    (project / "run.sh").write_text("exit 0\n")
    (project / "run.sh").chmod(0o750)
    (project / "link").symlink_to("run.sh")
    tree.store_pieces({tree.compute_hash(data): data for data in (b"RATE = 19\n", b"exit 0\n", b"run.sh")})
    return project


def list_paths(folder: Path) -> dict[str, object]:
    return {
        path.relative_to(folder).as_posix(): (path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
    }


def add_files(folder: Path) -> None:
    (folder / "src" / "__pycache__").mkdir()
    (folder / "src" / "__pycache__" / "shop.pyc").write_bytes(b"forged")
    (folder / "src" / "empty" / "new.txt").touch()


def edit_with_old_times(folder: Path) -> None:
    path = folder / "src" / "shop.py"
    status = path.stat()
    path.write_text("RATE = 20\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_pipe(folder: Path) -> None:
    (folder / "run.sh").unlink()
    os.mkfifo(folder / "run.sh")


def replace_by_link_to_content(folder: Path) -> None:
    """The target of the link is the text of the file."""
    (folder / "run.sh").unlink()
    (folder / "run.sh").symlink_to("exit 0\n")


def replace_folder_by_link(folder: Path) -> None:
    (folder / "src").rename(folder / "other")
    (folder / "src").symlink_to("other")


def change_modes(folder: Path) -> None:
    (folder / "run.sh").chmod(0o640)
    (folder / "src").chmod(0o500)


def remove_empty_folder(folder: Path) -> None:
    (folder / "src" / "empty").rmdir()


@pytest.mark.parametrize(
    "change",
    [
        add_files,
        edit_with_old_times,
        replace_by_pipe,
        replace_by_link_to_content,
        replace_folder_by_link,
        change_modes,
        remove_empty_folder,
    ],
)
def test_what_a_session_left_is_undone(project: Path, change: Callable[[Path], None]) -> None:
    scanned = scan_files(project, ScanScope())
    with tree.claim_tree(str(project)) as folder:
        assert tree.update_tree(folder, scanned, ()) == ()
        assert list_paths(folder) == list_paths(project)
        change(folder)
        assert list_paths(folder) != list_paths(project)
        assert tree.update_tree(folder, scanned, ()) == ()
        assert list_paths(folder) == list_paths(project)


def test_sealed_files_are_read_although_their_stamp_is_known(project: Path) -> None:
    scanned = scan_files(project, ScanScope())
    with tree.claim_tree(str(project)) as folder:
        tree.update_tree(folder, scanned, ())
        known = tree._KNOWN_FILES[folder]
        path = folder / "src" / "shop.py"
        path.write_text("RATE = 20\n")
        known["src/shop.py"] = make_stamp(path.lstat()), scanned.entries["src/shop.py"]
        assert tree.find_changed(folder, scanned.entries, ["src/shop.py", "run.sh", "link"]) == ["src/shop.py"]
        tree.update_tree(folder, scanned, {"src/shop.py"})
        assert path.read_text() == "RATE = 19\n"


def test_a_shard_never_gets_the_tree_of_another(project: Path) -> None:
    with tree.claim_tree(str(project)) as first, tree.claim_tree(str(project)) as second:
        assert first != second
    with tree.claim_tree(str(project)) as third:
        assert third == first
        assert third.name == "project"


def test_a_missing_or_damaged_piece_is_named(project: Path) -> None:
    digest = tree.compute_hash(b"RATE = 19\n")
    (tree.find_piece_folder() / digest).write_bytes(b"RATE = 0\n")
    scanned = scan_files(project, ScanScope())
    with tree.claim_tree(str(project)) as folder:
        assert tree.update_tree(folder, scanned, ()) == (digest,)
        assert not (tree.find_piece_folder() / digest).exists()
        assert tree.update_tree(folder, FileTree({}), ()) == ()
        assert list_paths(folder) == {}
