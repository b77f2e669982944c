from __future__ import annotations

import sys
from pathlib import Path

from pytest_loop.evaluate.bytecode import Bytecode


def test_modules_of_the_interpreter_are_there_and_those_of_the_project_are_not(tmp_path: Path) -> None:
    bytecode = Bytecode(tmp_path)
    with bytecode.fresh() as first:
        assert list(first.rglob("json/*.pyc")) or not list(Path(sys.base_prefix).rglob("json/__pycache__/*.pyc"))
        own = first / tmp_path.relative_to(tmp_path.anchor)
        own.mkdir(parents=True)
        (own / "shop.cpython-311.pyc").write_bytes(b"forged")
        library = first / Path(sys.base_prefix).resolve().relative_to("/") / "lib"
        library.mkdir(parents=True, exist_ok=True)
        (library / "learned.cpython-311.pyc").write_bytes(b"learned")
    assert not first.exists()
    with bytecode.fresh() as second:
        assert [path.name for path in second.rglob("learned*")] == ["learned.cpython-311.pyc"]
        assert list(second.rglob("shop*")) == []
        (second / "late.pyc").write_bytes(b"")
    with bytecode.fresh() as third:
        assert list(third.rglob("late*")) == []
    bytecode.close()


def test_a_project_inside_the_folder_of_the_interpreter_is_none_of_it() -> None:
    bytecode = Bytecode(Path(sys.base_prefix) / "projects" / "mine")
    with bytecode.fresh() as folder:
        assert list(folder.rglob("json/*.pyc")) == []
    bytecode.close()
