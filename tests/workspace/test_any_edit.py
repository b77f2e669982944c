"""Whatever sequence of edits an agent makes, undoing it leads back to exactly what was there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.workspace.content_archive import ContentArchive
from pytest_loop.workspace.file_scan import ScanScope, read_entry, scan_files
from pytest_loop.workspace.file_tree import compare_trees
from pytest_loop.workspace.project_diff import compute_diff

PATHS = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a", "b/\n"])
EDITS = st.lists(
    st.tuples(st.sampled_from(["write", "link", "pipe", "remove", "mode", "move"]), PATHS, PATHS), max_size=8
)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _way(root: Path, path: Path) -> None:
    """Folders up to the path, whatever was there."""
    for one in reversed(path.relative_to(root).parents[:-1]):
        if not (root / one).is_dir() or (root / one).is_symlink():
            _clear(root / one)
            (root / one).mkdir()
    _clear(path)


def _edit(root: Path, what: str, path: Path, other: Path) -> None:
    if what == "move":
        if path.exists() and path not in (other, *other.parents) and other not in path.parents:
            _way(root, other)
            if path.exists():
                path.rename(other)
    elif what == "mode":
        if path.is_file() and not path.is_symlink():
            path.chmod(0o755)
    else:
        _way(root, path)
        if what == "write":
            path.write_text(f"{what} {other}")
        elif what == "link":
            path.symlink_to(other)
        elif what == "pipe":
            os.mkfifo(path)


@settings(max_examples=150, deadline=None)
@given(EDITS, EDITS)
def test_undone_is_as_it_was(first: list[tuple[str, str, str]], then: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name, ContentArchive(Path(name) / "before.bin") as kept:
        root = Path(name) / "project"
        root.mkdir()
        for what, path, other in first:
            _edit(root, "write" if what == "pipe" else what, root / path, root / other)
        before = scan_files(root, ScanScope())
        assert kept.add_files(root, before) == ()
        for what, path, other in then:
            _edit(root, what, root / path, root / other)
        after = scan_files(root, ScanScope(), before)
        found = compare_trees(before, after)
        told = compute_diff(
            before,
            after,
            lambda path: kept.get_content(before.entries[path].digest),
            lambda path: read_entry(root, path, after.entries[path], 1000),
        )
        assert told.paths == found.paths
        done = kept.undo_changes(root, before, after, found)
        assert done.lost == ()
        assert scan_files(root, ScanScope(), before).digest == before.digest
