"""The clean room: left-out files are those of the start for a block, and everything is put back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.workspace import clean_room
from pytest_loop.workspace.clean_room import CleanRoom
from pytest_loop.workspace.clean_room_journal import put_back
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.workspace.conftest import Write

IGNORED = "*.log\nlocal/\n.coverage\n"


@pytest.fixture
def folder(project: Path) -> Path:
    return project / ".loop" / "run"


@pytest.fixture
def files(project: Path, folder: Path, write: Write) -> Iterator[SealedFiles]:
    write(".gitignore", IGNORED)
    write("shop.py")
    files = SealedFiles(project, folder, ["/tests/"])
    yield files
    files.close()


@pytest.fixture
def room(files: SealedFiles, folder: Path) -> Iterator[CleanRoom]:
    """A room whose start is recorded when it is used first; tests write files of the start before."""
    room = CleanRoom(files, folder)
    yield room
    room.close()


def record(files: SealedFiles, room: CleanRoom) -> str:
    files.record_start()
    return room.record()


def list_names(project: Path) -> set[str]:
    paths = (path.relative_to(project) for path in project.rglob("*") if path.is_file() or path.is_symlink())
    return {path.as_posix() for path in paths if path.parts[:2] != (".loop", "run")}


@pytest.mark.parametrize(
    "name",
    ["a.log", "local/impl.py", ".tox/impl.py", "node_modules/a/impl.py", ".git/impl.py", ".git/objects/ab/impl.py",
     "shop.egg-info/impl.py", "env/pyvenv.cfg", ".loop/impl.py", ".loop/run/impl.py", "__pycache__/impl.py", "src/a.log"],
)  # fmt: skip
def test_new_file_that_no_scan_lists_is_set_aside_and_put_back(
    files: SealedFiles, room: CleanRoom, project: Path, write: Write, name: str
) -> None:
    write(".git/HEAD")
    record(files, room)
    path = write(name, "new\n")
    write("src/new.py")
    files.accept_current()
    inode = path.stat().st_ino
    with room.enter():
        assert not path.exists()
        assert (project / "src/new.py").exists(), "it is part of the change"
    assert (path.read_text(), path.stat().st_ino) == ("new\n", inode)
    assert not (files.folder / "aside").exists()
    assert not (files.folder / "clean-room.json").exists()


def test_changed_and_removed_files_are_those_of_the_start(
    files: SealedFiles, room: CleanRoom, project: Path, write: Write
) -> None:
    changed, removed = write("local/a.so", "old"), write("local/deep/b.txt", "old")
    link = project / "local/link"
    link.symlink_to("a.so")
    record(files, room)
    changed.write_text("new")
    link.unlink()
    link.symlink_to("deep")
    removed.unlink()
    removed.parent.rmdir()
    with room.enter() as report:
        assert (changed.read_text(), removed.read_text(), str(link.readlink())) == ("old", "old", "a.so")
        assert changed.stat().st_mtime_ns < (project / "shop.py").stat().st_mtime_ns + 10**9
    assert report.changed == ["local/a.so", "local/deep/b.txt", "local/link"]
    assert not report.unverified
    assert (changed.read_text(), str(link.readlink()), removed.parent.exists()) == ("new", "deep", False)


def test_file_that_is_not_kept_stays_and_is_not_verified(
    files: SealedFiles, room: CleanRoom, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_room, "MAX_SIZE", 3)
    large = write("large.log", "large")
    record(files, room)
    large.write_text("other")
    with room.enter() as report:
        assert large.read_text() == "other"
    assert report.unverified == {"large.log": "it changed, and what it was is not kept"}


def test_output_of_sessions_is_that_of_the_start(
    files: SealedFiles, room: CleanRoom, project: Path, write: Write
) -> None:
    log = write("tests/log.txt", "start")
    write("tests/out/1.txt")
    files.record_start()
    files.extend_seal((), ("tests/out/", "tests/log.txt"))
    record(files, room)
    log.write_text("of the agent")
    product = write("tests/out/impl.py", "x = 1")
    with room.enter() as report:
        assert (log.read_text(), product.exists()) == ("start", False)
    assert (report.changed, report.unverified) == ([], {})
    assert (log.read_text(), product.read_text()) == ("of the agent", "x = 1")


def test_cache_that_is_not_kept_is_missing_and_what_a_session_writes_into_it_stays(
    files: SealedFiles, room: CleanRoom, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_room, "MAX_SIZE", 3)
    cache, coverage = write(".pytest_cache/last", "start"), write(".coverage", "start")
    record(files, room)
    cache.write_text("of the agent")
    coverage.write_text("of the agent")
    with room.enter() as report:
        assert not cache.exists()
        assert not coverage.exists()
        cache.write_text("of the session")
    assert (report.changed, report.unverified) == ([], {})
    assert (cache.read_text(), coverage.read_text()) == ("of the session", "of the agent")


def test_file_of_a_session_does_not_replace_one_that_was_set_aside(
    files: SealedFiles, room: CleanRoom, write: Write, project: Path
) -> None:
    record(files, room)
    path = write("local/state.db", "of the agent")
    with room.enter():
        write("local/state.db", "of the session")
        write("local/report.txt", "of the session")
    assert path.read_text() == "of the agent"
    assert (project / "local/report.txt").exists()


def test_commits_state_and_opened_paths_are_left_alone(
    files: SealedFiles, folder: Path, project: Path, write: Write
) -> None:
    write(".git/HEAD", "ref: refs/heads/main\n")
    write("node_modules/a.js")
    files.record_start()
    room = CleanRoom(files, folder, [str(project / "node_modules")])
    room.record()
    names = (".git/COMMIT_EDITMSG", f".git/objects/ab/{'0' * 38}", ".git/refs/heads/main", ".git/logs/HEAD")
    for name in (*names, ".git/HEAD", "node_modules/new.js", ".loop/other/history.jsonl", ".loop/run/history.jsonl"):
        write(name, "new")
    with room.enter() as report:
        assert not report.changed
    room.close()


def test_copies_of_what_was_put_back_are_set_aside_without_a_word(
    files: SealedFiles, folder: Path, room: CleanRoom
) -> None:
    record(files, room)
    copy = folder / "discarded/tests/test_shop.py"
    copy.parent.mkdir(parents=True)
    copy.touch()
    with room.enter() as report:
        assert not copy.exists()
    assert copy.exists()
    assert report.changed == []


@pytest.mark.parametrize("document", [".loop/run/openapi.yaml", "local/new/guide.md"])
def test_document_is_the_change_wherever_it_lies(files: SealedFiles, folder: Path, write: Write, document: str) -> None:
    files.record_start()
    room = CleanRoom(files, folder, document=document)
    room.record()
    path = write(document)
    with room.enter() as report:
        assert path.exists()
    assert not report.changed
    room.close()


def test_room_that_a_kill_left_is_put_back_once(
    files: SealedFiles, room: CleanRoom, folder: Path, project: Path, write: Write
) -> None:
    removed = write("local/removed.txt", "old")
    listing = record(files, room)
    new = write("local/new/impl.py", "new")
    removed.unlink()
    before = list_names(project)
    journal = {"root": str(project), "moved": ["local/new"], "written": ["local/removed.txt"], "made": []}
    (folder / "clean-room.json").write_text(json.dumps(journal))
    (folder / "aside").mkdir()
    (project / "local/new").rename(folder / "aside/0")
    (folder / "aside").chmod(0)
    removed.write_text("old")
    assert put_back(folder) == ("local/new",)
    assert (list_names(project), new.read_text()) == (before, "new")
    assert put_back(folder) == ()
    again = CleanRoom(files, folder)
    again.open(listing)
    with again.enter() as report:
        assert report.changed == ["local/new", "local/removed.txt"]
    again.close()


def test_process_that_is_killed_in_the_room_leaves_a_journal(
    files: SealedFiles, room: CleanRoom, folder: Path, project: Path, write: Write
) -> None:
    changed, removed = write("local/changed.txt", "old"), write("local/removed.txt", "old")
    record(files, room)
    changed.write_text("new")
    removed.unlink()
    write("local/new/impl.py", "new")
    write(".tox/impl.py", "new")
    before = {name: (project / name).read_text() for name in list_names(project)}
    child = os.fork()
    if child == 0:
        with room.enter():
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (changed.read_text(), (project / ".tox").exists()) == ("old", False)
    assert put_back(folder) == ("local/changed.txt", ".tox", "local/new")
    assert {name: (project / name).read_text() for name in list_names(project)} == before


def test_error_in_the_room_puts_everything_back(files: SealedFiles, room: CleanRoom, write: Write) -> None:
    record(files, room)
    path = write("a.log", "new")
    with pytest.raises(KeyboardInterrupt), room.enter():
        raise KeyboardInterrupt
    assert path.read_text() == "new"


def test_file_that_cannot_be_moved_is_not_verified(
    files: SealedFiles, room: CleanRoom, folder: Path, write: Write
) -> None:
    record(files, room)
    write("local/a.log", "new")
    (folder / "aside/0/file").mkdir(parents=True)
    with room.enter() as report:
        assert list(report.unverified) == ["local"]


def test_list_that_was_changed_is_refused(files: SealedFiles, room: CleanRoom, folder: Path) -> None:
    listing = record(files, room)
    (folder / "left-out.json").write_text("{}")
    with pytest.raises(StateError, match="is not as this run wrote it"):
        room.open(listing)


def test_broken_journal_says_where_the_files_are(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "clean-room.json").write_text("[]")
    with pytest.raises(StateError, match="move them back by hand"):
        put_back(folder)


def test_too_many_files_are_not_verified(
    files: SealedFiles, room: CleanRoom, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_loop.workspace.left_out_files.MAX_FILES", 1)
    for number in range(3):
        write(f"local/{number}/a.txt")
    record(files, room)
    with room.enter() as report:
        assert report.unverified["ignored files"] == "there are too many to compare them"


@pytest.mark.thorough
def test_odd_names_are_set_aside_and_put_back(
    files: SealedFiles, room: CleanRoom, project: Path, write: Write, odd_name: bytes
) -> None:
    write("local/x")
    record(files, room)
    path = write(b"local/" + odd_name, "new")
    with room.enter():
        assert not path.exists()
    assert path.read_text() == "new"


def test_further_files_are_set_aside(files: SealedFiles, room: CleanRoom, project: Path, write: Write) -> None:
    record(files, room)
    write("test_more.py")
    files.enforce_seal()
    with room.enter(["test_more.py"]) as report:
        assert "test_more.py" not in list_names(project)
    assert "test_more.py" in list_names(project)
    assert report.changed == []
