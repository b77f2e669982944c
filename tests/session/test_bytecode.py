from __future__ import annotations

import shutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from pytest_loop.session.bytecode import BytecodeCache


def test_modules_of_the_interpreter_are_there_and_those_of_the_project_are_not(tmp_path: Path) -> None:
    bytecode = BytecodeCache(tmp_path, is_new=True)
    folder = bytecode.prepare()
    known = list(folder.rglob("json/*.pyc"))
    assert known or not list(Path(sys.base_prefix).rglob("json/__pycache__/*.pyc"))
    own = folder / tmp_path.relative_to(tmp_path.anchor)
    own.mkdir(parents=True)
    (own / "shop.cpython-311.pyc").write_bytes(b"forged")
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
    assert list(folder.rglob("json/*.pyc")) == known
    bytecode.close()
    assert not folder.exists()


def test_who_has_loaded_them_finds_none_and_who_has_not_finds_them_as_they_were(
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
    bytecode = BytecodeCache(tmp_path / "project", is_new=False)
    compiled.write_bytes(b"forged")
    folder = bytecode.prepare(is_full=False)
    assert list(folder.iterdir()) == []
    for _ in range(2):
        [found] = bytecode.prepare().rglob("tool.pyc")
        assert found.read_bytes() == b"true"
        assert found == folder / tmp_path.relative_to("/") / "site" / "tool.pyc"
    shutil.rmtree(folder)
    [found] = bytecode.prepare().rglob("tool.pyc")
    assert found.read_bytes() == b"true"
    bytecode.close()


def test_a_project_inside_the_folder_of_the_interpreter_is_none_of_it() -> None:
    bytecode = BytecodeCache(Path(sys.base_prefix) / "projects" / "mine", is_new=True)
    assert list(bytecode.prepare().rglob("json/*.pyc")) == []
    bytecode.close()


def test_folders_that_a_session_has_put_in_place_are_gone(tmp_path: Path) -> None:
    """Python would follow a link, and read what it knows by name in a folder that lists nothing."""
    bytecode = BytecodeCache(tmp_path, is_new=True)
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


def test_what_a_session_of_an_older_run_compiles_is_not_believed(tmp_path: Path) -> None:
    bytecode = BytecodeCache(tmp_path, is_new=False)
    library = bytecode.prepare() / Path(sys.base_prefix).resolve().relative_to("/") / "lib"
    library.mkdir(parents=True, exist_ok=True)
    (library / "planted.cpython-311.pyc").write_bytes(b"forged")
    assert list(bytecode.prepare().rglob("planted*")) == []
    bytecode.close()


def test_a_folder_that_a_session_has_replaced_is_left_alone(tmp_path: Path) -> None:
    bytecode = BytecodeCache(tmp_path, is_new=True)
    folder = bytecode.prepare()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    shutil.rmtree(folder)
    folder.symlink_to(mine)
    another = bytecode.prepare()
    assert another != folder
    assert another.is_dir()
    shutil.rmtree(another)
    assert bytecode.prepare().is_dir()
    assert (mine / "letter.txt").read_text() == "dear"
    folder.unlink()
    bytecode.close()
