"""A lock has one owner at a time, and a dead one does not count."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_loop.errors import BusyError, StateError
from pytest_loop.store.lock import Lock, Owner, lock_folder

HOLDER = """
import sys, time
from pathlib import Path
from pytest_loop.store.lock import Lock
Lock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".lock"


def test_lock_names_its_owner_and_is_deleted_on_release(path: Path) -> None:
    lock = Lock(path)
    assert lock.find_owner() is Owner.NONE
    lock.acquire()
    assert lock.find_owner() is Lock(path).find_owner() is Owner.ALIVE
    note = json.loads(path.read_text())
    assert note["pid"] == os.getpid()
    assert note["started_at"].endswith("Z")
    lock.release()
    lock.release()
    assert not path.exists()


def test_second_owner_is_refused_with_the_pid_of_the_first(path: Path) -> None:
    lock = Lock(path)
    lock.acquire()
    with pytest.raises(BusyError, match=f"^process {os.getpid()} works there$"):
        Lock(path).acquire(timeout=0.1)
    lock.release()
    Lock(path).acquire()


def test_lock_of_a_killed_process_is_free_even_if_its_pid_is_reused(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert Lock(path).find_owner() is Owner.ALIVE
        holder.send_signal(signal.SIGKILL)
    path.write_text(json.dumps({"pid": os.getpid(), "started_at": "2026-01-01T00:00:00.000Z"}))
    assert Lock(path).find_owner() is Owner.DEAD
    lock = Lock(path)
    lock.acquire()
    assert lock.is_held


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b"\xff\xfe", b'"1"'])
def test_damaged_note_is_no_obstacle(path: Path, note: bytes) -> None:
    path.write_bytes(note)
    assert Lock(path).read_note() == {}
    Lock(path).acquire()


def test_deleted_lock_is_renewed(path: Path) -> None:
    lock = Lock(path)
    lock.acquire()
    lock.renew()
    path.unlink()
    lock.renew()
    assert path.exists()
    path.unlink()
    lock.release()


def test_folder_in_place_of_a_lock_is_an_error(path: Path) -> None:
    path.mkdir()
    assert Lock(path).find_owner() is Owner.NONE
    with pytest.raises(StateError, match=r"cannot lock .*/\.lock: Is a directory; move that folder away"):
        Lock(path).acquire()


def test_folder_is_locked_without_a_file(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        with pytest.raises(BusyError, match=r"another process has locked .* for more than 0.1 s: try again"):  # noqa: SIM117
            with lock_folder(tmp_path, timeout=0.1):
                pass
        assert list(tmp_path.iterdir()) == []
    with lock_folder(tmp_path), pytest.raises(StateError, match=r"cannot lock .*: No such file"):  # noqa: SIM117
        with lock_folder(tmp_path / "none"):
            pass
