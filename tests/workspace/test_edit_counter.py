"""How often an agent writes each file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_loop.workspace import edit_counter
from pytest_loop.workspace.edit_counter import EditCounter, Rewrites, count_file_edits, count_project_edits
from pytest_loop.workspace.sealed_files import SealedFiles


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SealedFiles]:
    (tmp_path / "shop.py").write_text("x = 0\n")
    (tmp_path / "other.py").write_text("y = 0\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    files = SealedFiles(tmp_path, tmp_path / ".loop" / "run", ())
    files.record_start()
    yield files
    files.close()


def test_file_that_changed_most_often_is_found(project: SealedFiles) -> None:
    counter = count_project_edits(project)
    for number in range(5):
        (project.root / "shop.py").write_text(f"x = {number + 1}\n")
        (project.root / "run.log").write_text(f"{number}\n")
        (project.root / "data.bin").write_bytes(b"\0" + bytes([number]))
        counter.look()
    (project.root / "other.py").write_text("y = 1\n")
    assert counter.find_most_edited(project.root) == Rewrites("shop.py", 5)


def test_untouched_files_and_equal_contents_do_not_count(project: SealedFiles) -> None:
    counter = count_project_edits(project)
    (project.root / "shop.py").write_text("x = 0\n")
    assert counter.find_most_edited(project.root) == Rewrites()


def test_last_edit_counts_without_a_look_after_it(project: SealedFiles) -> None:
    counter = count_project_edits(project)
    (project.root / "shop.py").write_text("x = 1\n")
    assert counter.find_most_edited(project.root) == Rewrites("shop.py", 1)


def test_file_that_is_gone_does_not_count(project: SealedFiles) -> None:
    counter = count_project_edits(project)
    (project.root / "new.py").write_text("z = 1\n")
    counter.look()
    (project.root / "new.py").unlink()
    assert counter.find_most_edited(project.root) == Rewrites()


def test_document_is_counted_too(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    counter = count_file_edits(path)
    for number in range(3):
        path.write_text("x" * (number + 1))
        counter.look()
    assert counter.find_most_edited(tmp_path) == Rewrites("guide.md", 3)


def test_looks_are_rare_where_they_take_long() -> None:
    now, looks = [0.0], []

    def look() -> dict[str, object]:
        looks.append(now[0])
        now[0] += 2.0  # a look takes two seconds
        return {}

    counter = EditCounter({}, look, lambda: now[0])
    for _ in range(1000):
        now[0] += 0.05
        counter.poll()
    pauses = [second - first for first, second in pairwise(looks)]
    assert pauses
    assert min(pauses) >= edit_counter.PAUSE_PER_LOOK * 2.0
