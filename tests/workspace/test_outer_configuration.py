"""Configuration above the root and in the home folder is part of the seal."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.workspace.environment import hash_outer_configuration


def test_configuration_above_the_root_and_at_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, root = tmp_path / "home", tmp_path / "work/project"
    monkeypatch.setenv("HOME", str(home))
    root.mkdir(parents=True)
    before = hash_outer_configuration(root)
    for name in ("work/ruff.toml", "work/project/ruff.toml", "work/notes.txt", "home/.config/ruff/ruff.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    names = ("work/ruff.toml", "home/.config/ruff/ruff.toml")
    assert hash_outer_configuration(root).keys() - before.keys() == {str(tmp_path.resolve() / name) for name in names}
