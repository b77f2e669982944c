"""Files are replaced atomically, only regular files are opened, and errors name a remedy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.store.disk import write_atomically


def test_file_is_replaced_with_its_mode_and_without_a_draft(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_draft_of_a_crash_is_replaced_even_if_it_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".run.json.tmp").symlink_to(tmp_path / "precious")
    write_atomically(tmp_path / "run.json", b"new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "run.json").read_text() == "new"


def test_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "run.json").symlink_to(tmp_path / "elsewhere")
    write_atomically(tmp_path / "run.json", b"new")
    assert (tmp_path / "elsewhere").read_text() == "precious"
    assert not (tmp_path / "run.json").is_symlink()


def test_folder_in_the_way_is_an_error_with_a_remedy_and_no_draft_stays(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    expected = r"cannot write .*/run\.json: Is a directory; move that folder away, then go on with pytest-loop resume"
    with pytest.raises(StateError, match=expected):
        write_atomically(tmp_path / "run.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_file_in_the_way_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".loop").write_text("")
    with pytest.raises(StateError, match=r"cannot make .*: Not a directory; move the file that is in the way"):
        disk.make_folder(tmp_path / ".loop" / "guide")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "No space left on device; make room on the disk, then"),
        (errno.EROFS, "Read-only file system; make the disk writable, then"),
        (errno.EMFILE, r"Too many open files; allow more open files \(ulimit -n\), then"),
        (errno.EIO, "Input/output error; look after the disk, then"),
        (errno.EACCES, "Permission denied; give this user access, then"),
        (errno.ELOOP, "it is a symbolic link; move that link away, then"),
        (errno.EXDEV, "Invalid cross-device link; free the way, then"),
    ],
)
def test_os_error_becomes_a_sentence_with_a_remedy(number: int, remedy: str) -> None:
    with pytest.raises(StateError, match=f"cannot write run.json: {remedy} go on with pytest-loop resume"):  # noqa: SIM117
        with disk.translate_errors("write", Path("run.json")):
            raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_only_a_regular_file_is_read_and_a_pipe_does_not_block(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"it is not a file|Too many levels|Is a directory"):
        disk.open_for_reading(path)


def test_file_is_truncated_and_its_last_line_ended(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"one\ntwo")
    disk.truncate_file(path, 3, b"\n")
    assert path.read_bytes() == b"one\n"


def test_link_exists_and_has_no_content(tmp_path: Path) -> None:
    assert not disk.path_exists(tmp_path / "none")
    assert not disk.path_exists(tmp_path / "none" / "none")
    (tmp_path / "link").symlink_to("nowhere")
    assert disk.path_exists(tmp_path / "link")
    assert disk.read_file(tmp_path) is disk.read_file(tmp_path / "link") is None
    assert disk.hash_file(tmp_path / "link") == ""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a disk that cannot flush its folders")
def test_disk_that_cannot_flush_folders_is_no_error() -> None:
    disk.flush_folder(Path("/proc/self"))
