"""What a run remembers is signed with a secret outside of the project."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pytest_loop.store import signature
from pytest_loop.store.signature import Signer


@pytest.fixture(autouse=True)
def _fresh_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_signed_line_is_recognised_and_stays_json(tmp_path: Path) -> None:
    line = Signer(tmp_path).sign(b'{"event": "step"}')
    assert line.startswith(b'{"event": "step", "mac": "')
    assert Signer(tmp_path).is_signed(line)
    assert Signer(tmp_path).is_signed(line + b"\n")


def test_changed_or_unsigned_line_is_not_recognised(tmp_path: Path) -> None:
    signer = Signer(tmp_path)
    line = signer.sign(b'{"event": "step"}')
    assert not signer.is_signed(line.replace(b"step", b"stop"))
    assert not signer.is_signed(b'{"event": "step"}')


def test_line_of_another_machine_is_not_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Signer(tmp_path).sign(b'{"event": "step"}')
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not Signer(tmp_path).is_signed(line)


def test_secret_is_readable_by_its_user_alone(tmp_path: Path) -> None:
    Signer(tmp_path)
    path = signature.find_state_folder() / "key"
    assert (len(path.read_bytes()), stat.S_IMODE(path.stat().st_mode)) == (32, 0o600)
    assert [file.name for file in path.parent.iterdir()] == ["key"]


def test_signed_run_is_known_by_its_folder(tmp_path: Path) -> None:
    assert not Signer(tmp_path / "run").is_known_run
    Signer(tmp_path / "run").register()
    assert Signer(tmp_path / "run").is_known_run
    assert not Signer(tmp_path / "other").is_known_run


def test_nothing_is_signed_where_no_secret_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    signer = Signer(tmp_path)
    signer.register()
    assert signer.sign(b"{}") == b"{}"
    assert (signer.is_known_run, signer.is_signed(b'{"a": 1, "mac": "' + b"0" * 32 + b'"}')) == (False, False)


def test_secret_is_looked_for_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    assert signature.find_state_folder() == Path("~/.local/state/pytest-loop").expanduser()
