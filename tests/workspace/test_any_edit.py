"""Undoing any sequence of edits restores exactly the files before."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
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


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_parents(root: Path, path: Path) -> None:
    """Create the parent folders of a path in place of whatever is there, and remove the path."""
    for parent in reversed(path.relative_to(root).parents[:-1]):
        if not (root / parent).is_dir() or (root / parent).is_symlink():
            _remove(root / parent)
            (root / parent).mkdir()
    _remove(path)


def _edit(root: Path, action: str, path: Path, other: Path) -> None:
    if action == "move":
        if path.exists() and path not in (other, *other.parents) and other not in path.parents:
            _make_parents(root, other)
            if path.exists():
                path.rename(other)
    elif action == "mode":
        if path.is_file() and not path.is_symlink():
            path.chmod(0o755)
    else:
        _make_parents(root, path)
        if action == "write":
            path.write_text(f"{action} {other}")
        elif action == "link":
            path.symlink_to(other)
        elif action == "pipe":
            os.mkfifo(path)


@settings(max_examples=150, deadline=None)
@given(EDITS, EDITS)
def test_undoing_any_edits_restores_every_file(
    first_edits: list[tuple[str, str, str]], later_edits: list[tuple[str, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as name, closing(ContentArchive(Path(name) / "before.bin")) as archive:
        root = Path(name) / "project"
        root.mkdir()
        for action, path, other in first_edits:
            _edit(root, "write" if action == "pipe" else action, root / path, root / other)
        before = scan_files(root, ScanScope())
        assert archive.add_files(root, before) == ()
        for action, path, other in later_edits:
            _edit(root, action, root / path, root / other)
        after = scan_files(root, ScanScope(), before)
        changes = compare_trees(before, after)
        diff = compute_diff(
            before,
            after,
            lambda path: archive.get_content(before.entries[path].digest),
            lambda path: read_entry(root, path, after.entries[path], 1000),
        )
        assert diff.paths == changes.paths
        result = archive.undo_changes(root, before, after, changes)
        assert result.lost == ()
        assert scan_files(root, ScanScope(), before).digest == before.digest
