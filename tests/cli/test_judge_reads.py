"""Patterns for what the judge reads are made from the reads of a session."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.cli.judge_reads import find_read_patterns
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
