from __future__ import annotations

import sys
from pathlib import Path

from pytest_loop.evaluate.bytecode import Bytecode


def test_modules_of_the_interpreter_are_there_and_those_of_the_project_are_not(tmp_path: Path) -> None:
    bytecode = Bytecode(tmp_path)
    folder = bytecode.fresh()
    known = list(folder.rglob("json/*.pyc"))
    assert known or not list(Path(sys.base_prefix).rglob("json/__pycache__/*.pyc"))
    own = folder / tmp_path.relative_to(tmp_path.anchor)
    own.mkdir(parents=True)
    (own / "shop.cpython-311.pyc").write_bytes(b"forged")
    library = folder / Path(sys.base_prefix).resolve().relative_to("/") / "lib"
    library.mkdir(parents=True, exist_ok=True)
    (library / "learned.cpython-311.pyc").write_bytes(b"learned")

    assert bytecode.fresh() == folder
    assert [path.name for path in folder.rglob("learned*")] == ["learned.cpython-311.pyc"]
    assert list(folder.rglob("shop*")) == []
    (folder / "late.pyc").write_bytes(b"")
    (library / "late.cpython-311.pyc").write_bytes(b"")
    (library / "learned.cpython-311.pyc").write_bytes(b"changed")

    bytecode.fresh()
    assert list(folder.rglob("late*")) == []
    assert list(folder.rglob("learned*")) == []
    assert list(folder.rglob("json/*.pyc")) == known
    bytecode.close()
    assert not folder.exists()


def test_a_project_inside_the_folder_of_the_interpreter_is_none_of_it() -> None:
    bytecode = Bytecode(Path(sys.base_prefix) / "projects" / "mine")
    assert list(bytecode.fresh().rglob("json/*.pyc")) == []
    bytecode.close()
