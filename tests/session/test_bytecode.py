"""The bytecode cache of sessions."""

from __future__ import annotations

import shutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from pytest_loop.session.bytecode import BytecodeCache


def test_only_bytecode_of_installed_modules_stays(tmp_path: Path) -> None:
    bytecode = BytecodeCache(tmp_path, is_new_run=True)
    folder = bytecode.prepare()
    installed = list(folder.rglob("json/*.pyc"))
    assert installed or not list(Path(sys.base_prefix).rglob("json/__pycache__/*.pyc"))
    project_folder = folder / tmp_path.relative_to(tmp_path.anchor)
    project_folder.mkdir(parents=True)
    (project_folder / "shop.cpython-311.pyc").write_bytes(b"forged")
    library = folder / Path(sys.base_prefix).resolve().relative_to("/") / "lib"
    library.mkdir(parents=True, exist_ok=True)
    (library / "learned.cpython-311.pyc").write_bytes(b"learned")

    assert bytecode.prepare() == folder
    assert [path.name for path in folder.rglob("learned*")] == ["learned.cpython-311.pyc"]
    assert list(folder.rglob("shop*")) == []
    (folder / "late.pyc").write_bytes(b"")
    (library / "late.cpython-311.pyc").write_bytes(b"")
    (library / "learned.cpython-311.pyc").write_bytes(b"changed")

    bytecode.prepare()
    assert list(folder.rglob("late*")) == []
    assert list(folder.rglob("learned*")) == []
    assert list(folder.rglob("json/*.pyc")) == installed
    bytecode.close()
    assert not folder.exists()


def test_bytecode_of_the_first_session_stays_until_its_file_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [tmp_path / f"{name}.py" for name in ("kept", "edited", "removed")]
    for source in sources:
        source.write_text("")
    monkeypatch.setattr("pytest_loop.session.bytecode._CLOCK_TICK", -(10**12))  # as if they were written long ago
    bytecode = BytecodeCache(tmp_path, is_new_run=True)
    folder = bytecode.prepare() / tmp_path.relative_to(tmp_path.anchor)
    folder.mkdir(parents=True)
    for source in (*sources, tmp_path / "never.py"):
        (folder / f"{source.stem}.{sys.implementation.cache_tag}.pyc").write_bytes(b"compiled")
    bytecode.prepare()
    assert sorted(path.name.partition(".")[0] for path in folder.iterdir()) == ["edited", "kept", "removed"]
    sources[1].write_text("pass")
    sources[2].unlink()
    bytecode.prepare()
    assert [path.name.partition(".")[0] for path in folder.iterdir()] == ["kept"]
    bytecode.close()


def test_a_full_cache_has_the_bytecode_that_was_loaded_when_the_run_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tmp_path / "site" / "__pycache__" / "tool.pyc"
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(b"true")
    module = ModuleType("tool")
    module.__spec__ = ModuleSpec("tool", None, origin=str(tmp_path / "site" / "tool.py"))
    module.__spec__.cached = str(compiled)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "site"))
    monkeypatch.setitem(sys.modules, "tool", module)
    bytecode = BytecodeCache(tmp_path / "project", is_new_run=False)
    compiled.write_bytes(b"forged")
    folder = bytecode.prepare(is_cold=False)
    assert list(folder.iterdir()) == []
    for _ in range(2):
        [compiled_file] = bytecode.prepare().rglob("tool.pyc")
        assert compiled_file.read_bytes() == b"true"
        assert compiled_file == folder / tmp_path.relative_to("/") / "site" / "tool.pyc"
    shutil.rmtree(folder)
    [compiled_file] = bytecode.prepare().rglob("tool.pyc")
    assert compiled_file.read_bytes() == b"true"
    bytecode.close()


def test_a_project_inside_the_interpreters_folder_is_not_installed() -> None:
    bytecode = BytecodeCache(Path(sys.base_prefix) / "projects" / "linked", is_new_run=True)
    assert list(bytecode.prepare().rglob("json/*.pyc")) == []
    bytecode.close()


def test_links_and_unreadable_folders_of_a_session_are_deleted(tmp_path: Path) -> None:
    """Python follows links, and reads files by name in folders that cannot be listed."""
    bytecode = BytecodeCache(tmp_path, is_new_run=True)
    folder = bytecode.prepare()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "shop.pyc").write_bytes(b"forged")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "closed").mkdir()
    (folder / "closed" / "shop.pyc").write_bytes(b"forged")
    (folder / "closed").chmod(0o300)
    (folder / "loop").symlink_to("loop")
    bytecode.prepare()
    assert not [
        name for name in ("linked", "closed", "loop") if (folder / name).is_symlink() or (folder / name).exists()
    ]
    assert (elsewhere / "shop.pyc").exists()
    bytecode.close()


def test_bytecode_of_a_resumed_runs_session_is_not_trusted(tmp_path: Path) -> None:
    bytecode = BytecodeCache(tmp_path, is_new_run=False)
    library = bytecode.prepare() / Path(sys.base_prefix).resolve().relative_to("/") / "lib"
    library.mkdir(parents=True, exist_ok=True)
    (library / "planted.cpython-311.pyc").write_bytes(b"forged")
    assert list(bytecode.prepare().rglob("planted*")) == []
    bytecode.close()


def test_a_folder_that_a_session_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    bytecode = BytecodeCache(tmp_path, is_new_run=True)
    folder = bytecode.prepare()
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "letter.txt").write_text("dear")
    shutil.rmtree(folder)
    folder.symlink_to(linked)
    another = bytecode.prepare()
    assert another != folder
    assert another.is_dir()
    shutil.rmtree(another)
    assert bytecode.prepare().is_dir()
    assert (linked / "letter.txt").read_text() == "dear"
    folder.unlink()
    bytecode.close()
