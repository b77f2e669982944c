from __future__ import annotations

from pytest_loop.show.look import Look
from pytest_loop.show.short_diff import render_short_diff

DIFF = """\
--- a/src/invoice.py
+++ b/src/invoice.py
@@ -10,3 +10,3 @@
 def total(net, tax):
     # tax
-    return net - net * tax / 100
+    return net + net * tax / 100
@@ -20,3 +20,2 @@
 def greet(name):
--- a comment that looks like a header
-    pass
+    return name
"""
NEW_FILE = """\
--- /dev/null
+++ b/notes.md
@@ -0,0 +1,2 @@
+one
+two
"""


def test_each_change_has_its_place_once() -> None:
    assert list(render_short_diff(DIFF, Look())) == [
        "       src/invoice.py:12  -     return net - net * tax / 100",
        "                          +     return net + net * tax / 100",
        "       src/invoice.py:21  - -- a comment that looks like a header",
        "                          -     pass",
        "                          +     return name",
    ]


def test_new_file_is_shown_from_its_first_line() -> None:
    assert list(render_short_diff(NEW_FILE, Look())) == ["       notes.md:1  + one", "                   + two"]


def test_long_diff_is_cut_and_names_the_command_that_shows_it() -> None:
    lines = "".join(f"+line {number}\n" for number in range(40))
    diff = f"--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1,40 @@\n{lines}"
    shown = list(render_short_diff(diff, Look(), limit=3))
    assert len(shown) == 4
    assert shown[-1] == "       … 37 more lines: pytest-loop diff"


def test_file_after_one_that_was_left_out_has_its_own_name() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-old\n[... 9 more lines of this diff left out ...]\n" + NEW_FILE
    assert [line.split()[0] for line in render_short_diff(diff, Look()) if ":" in line] == ["a.py:1", "notes.md:1"]


def test_long_lines_fit_into_the_width_and_have_colours() -> None:
    diff = NEW_FILE.replace("one", "x" * 200)
    assert max(len(line) for line in render_short_diff(diff, Look(width=60))) == 60
    assert "\x1b[32m+ two\x1b[0m" in "\n".join(render_short_diff(diff, Look(is_coloured=True)))
