"""A diff shows everything that matters, and nothing can hide in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_loop.workspace.content_archive import ContentArchive
from pytest_loop.workspace.file_scan import ScanScope, read_entry, scan_files
from pytest_loop.workspace.file_tree import FileChanges
from pytest_loop.workspace.project_diff import NO_CHANGE, ProjectDiff, compute_diff, render_document_diff

Write = Callable[..., Path]
Edits = Callable[[], object]


def _compute_diff(root: Path, edit: Edits, limit: int = 100_000) -> ProjectDiff:
    before = scan_files(root, ScanScope())
    with closing(ContentArchive(root / ".loop" / "before.bin")) as archive:
        archive.add_files(root, before)
        edit()
        after = scan_files(root, ScanScope(), before)
        return compute_diff(
            before,
            after,
            lambda path: archive.get_content(before.entries[path].digest),
            lambda path: read_entry(root, path, after.entries[path], 10**6),
            limit,
        )


def test_change_is_a_diff_with_file_names_and_counts(project: Path, write: Write) -> None:
    write("src/a.py", "".join(f"line {number}\n" for number in range(1, 11)))
    write("old.py", "gone\n")
    write("same.py")

    def edit() -> None:
        write(
            "src/a.py",
            "".join(f"line {number}\n" for number in range(1, 11)).replace("line 5\n", "line five\nand more\n"),
        )
        (project / "old.py").unlink()
        write("new.py", "new\nfile")

    diff = _compute_diff(project, edit)
    assert diff.changes == FileChanges(("new.py",), ("old.py",), ("src/a.py",))
    assert (diff.lines_added, diff.lines_removed) == (4, 2)
    assert diff.paths == ("new.py", "old.py", "src/a.py")
    assert diff.text == dedent("""\
        # What has changed

        Files: 1 added, 1 removed, 1 modified. Lines: 4 added, 2 removed.

        - added new.py (+2 -0)
        - removed old.py (+0 -1)
        - modified src/a.py (+2 -1)

        ```diff
        --- /dev/null
        +++ b/new.py
        @@ -0,0 +1,2 @@
        +new
        +file
        \\ No newline at end of file
        --- a/old.py
        +++ /dev/null
        @@ -1 +0,0 @@
        -gone
        --- a/src/a.py
        +++ b/src/a.py
        @@ -2,7 +2,8 @@
         line 2
         line 3
         line 4
        -line 5
        +line five
        +and more
         line 6
         line 7
         line 8
        ```
        """)


def test_diff_can_be_applied_by_other_tools(project: Path, write: Write, tmp_path: Path) -> None:
    write("a.txt", "".join(f"{number}\n" for number in range(50)))
    write("b.txt", "no end")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", project, copy], check=True)

    def edit() -> None:
        write("a.txt", "".join(f"{number * (number != 20)}\n" for number in range(3, 50)))
        write("b.txt", "no end\nbut more\n")
        write("c.txt", "added\n")

    text = _compute_diff(project, edit).text
    diff = text.split("```diff\n")[1].split("```")[0]
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=copy, check=True)
    for name in ("a.txt", "b.txt", "c.txt"):
        assert (copy / name).read_bytes() == (project / name).read_bytes()


def test_no_change_is_reported(project: Path, write: Write) -> None:
    write("a.py")
    diff = _compute_diff(project, lambda: None)
    assert (diff.text, diff.paths, diff.lines_added) == (NO_CHANGE, (), 0)


def test_changes_without_lines_are_described(project: Path, write: Write) -> None:
    write("picture", b"\0\1")
    write("script", "x\n")
    write("file", "x\n")
    write("pipe", "x\n")
    write("large")

    def edit() -> None:
        write("picture", b"\0\2")
        (project / "script").chmod(0o755)
        (project / "file").unlink()
        (project / "file").symlink_to("else\u202ewhere")
        (project / "pipe").unlink()
        os.mkfifo(project / "pipe")
        write("large", "x" * (10**6 + 1))
        write("empty", "")

    text = _compute_diff(project, edit).text
    assert text.split("\n\n", 2)[2] == dedent("""\
        - added empty
        - modified file (+1 -1, a link)
        - modified large (not shown)
        - modified picture (binary)
        - modified pipe (neither file nor link, not shown)
        - modified script (may now be run)

        ```diff
        --- a/file
        +++ b/file
        @@ -1 +1 @@
        -x
        +link to else\\u202ewhere
        \\ No newline at end of file
        ```
        """)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"if admin:\xe2\x80\xae } \xe2\x81\xa6", "+if admin:\\u202e } \\u2066"),
        (b"\x1b[2K\rnothing", "+\\x1b[2K\\rnothing"),
        (b"zero\xe2\x80\x8bwidth", "+zero\\u200bwidth"),
        (b"latin \xe9", "+latin \\xe9"),
        ("Größe 漢字\t😀".encode(), "+Größe 漢字\t😀"),
    ],
)
def test_hidden_characters_are_revealed(project: Path, write: Write, line: bytes, expected: str) -> None:
    text = _compute_diff(project, lambda: write("a.py", line + b"\n")).text
    assert expected in text.splitlines()


def test_any_name_takes_one_line(project: Path, write: Write, odd_name: bytes) -> None:
    text = _compute_diff(project, lambda: write(odd_name, "x\n")).text
    lines = text.split("\n")
    assert len(lines) == 13
    assert lines[7] == "--- /dev/null"
    text.encode()


def test_fence_cannot_be_closed_by_content(project: Path, write: Write) -> None:
    text = _compute_diff(project, lambda: write("a.md", "```\n````\n")).text
    assert "\n`````diff\n" in text
    assert text.endswith("\n`````\n")


def test_long_diff_is_cut_with_a_note(project: Path, write: Write) -> None:
    def edit() -> None:
        for number in range(9):
            write(f"{number}.txt", "".join(f"line {line}\n" for line in range(1000)))

    diff = _compute_diff(project, edit, limit=4000)
    assert len(diff.text) < 5000
    assert diff.lines_added == 9000
    assert "[... 907 more lines of this diff left out ...]" in diff.text.splitlines()
    assert "The diffs of 5 more files are left out." in diff.text.splitlines()
    assert "- added 8.txt (+1000 -0)" in diff.text.splitlines()


def test_long_line_is_cut(project: Path, write: Write) -> None:
    text = _compute_diff(project, lambda: write("a.txt", "x" * 100_000)).text
    assert "[... 99,000 characters left out ...]" in text
    assert len(text) < 2000


def test_names_of_very_many_files_are_limited(project: Path, write: Write) -> None:
    def edit() -> None:
        for number in range(250):
            write(f"{number:03}.txt", "x\n")

    diff = _compute_diff(project, edit, limit=100)
    assert "- and 50 more" in diff.text.splitlines()
    assert (diff.lines_added, len(diff.paths)) == (250, 250)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("", "a\n", "--- /dev/null\n+++ b/x.md\n@@ -0,0 +1 @@\n+a"),
        ("a\nb\n", "a\nc\n", "--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,2 @@\n a\n-b\n+c"),
        ("a\n", "a\n", ""),
        ("", "x" * 200 + "\n", ""),
    ],
    ids=["new", "edited", "the same", "too long"],
)
def test_change_of_a_document_is_a_diff_within_its_limit(old: str, new: str, shown: str) -> None:
    assert render_document_diff("x.md", old, new, 100) == shown
