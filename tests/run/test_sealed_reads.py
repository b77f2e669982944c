"""Patterns for what the judge reads are made from the reads of a session."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.run.sealed_reads import find_read_patterns, seal_late_reads
from pytest_loop.workspace.seal import build_seal_patterns
from pytest_loop.workspace.sealed_files import SealedFiles

TEST = "tests/test_it.py"
FILES = {
    TEST: "",
    "pyproject.toml": '[project]\nname = "My-Shop"\n',
    "my_shop/__init__.py": "",
    "my_shop/testing.py": "import pytest\n",
    "helpers.py": "",
    "fixtures.py": "",
    "prices.py": "import fixtures\n",
    "data.json": "6",
    ".gitignore": ".env\ncache.json\n",
    ".env": "x",
    "cache.json": "x",
}


def test_data_and_helpers_of_tests_are_sealed_and_the_package_is_not(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", build_seal_patterns([TEST]))
    project.record_start()
    reads = {(path, TEST) for path in (*(FILES.keys() - {".gitignore"}), ".git/.env", "gone.json")}
    assert find_read_patterns(project, reads, ["gone.py"]) == ("/.env", "/data.json", "/helpers.py")
    project.close()


def test_what_a_later_session_reads_is_sealed_if_it_was_edited(tmp_path: Path) -> None:
    for name in ("data.json", "new.json", "open.json", "other.json", "prices.py", ".env"):
        (tmp_path / name).write_text("1")
    (tmp_path / "new.json").unlink()
    (tmp_path / ".gitignore").write_text(".env\n")
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", build_seal_patterns([TEST], unseal=["open.json"]))
    project.record_start()
    reads = {(name, TEST) for name in ("data.json", "new.json", "open.json", "prices.py", ".env")}
    for name in ("new.json", "open.json", "other.json", "prices.py"):
        (tmp_path / name).write_text("2")
    project.accept_current()
    seal_late_reads(project, reads)
    assert project.enforce_seal() == []
    (tmp_path / "data.json").write_text("2")
    project.accept_current()
    seal_late_reads(project, reads)
    assert [finding.path for finding in project.enforce_seal()] == ["data.json"]
    assert (tmp_path / "data.json").read_text() == "1"
    assert (tmp_path / ".env").exists()
    project.close()
