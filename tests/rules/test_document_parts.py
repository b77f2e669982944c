"""The parts of documents in several formats."""

from __future__ import annotations

import pytest

from pytest_loop.rules.document_parts import compare_documents

GUIDE = "Intro.\n\n# Guide\n\n## Install\n\npip\n\n## Usage\n\nrun\n"


@pytest.mark.parametrize(
    ("name", "before", "after", "change"),
    [
        ("guide.md", None, GUIDE, "initial generation"),
        ("guide.md", "", GUIDE, "initial generation"),
        ("guide.md", GUIDE, GUIDE, "nothing"),
        ("guide.md", GUIDE, f"{GUIDE}\n## Restore\n\nbackup restore\n", "added Restore"),
        ("guide.md", GUIDE, GUIDE.replace("pip", "pip install"), "modified Install"),
        ("guide.md", GUIDE, GUIDE.replace("Intro.", "Hello."), "modified the beginning"),
        ("guide.md", GUIDE, GUIDE.replace("## Usage\n\nrun\n", ""), "removed Usage"),
        ("guide.md", "# A\n\nx\n\n# A\n\ny\n", "# A\n\nx\n\n# A\n\nz\n", "modified A"),
        ("guide.md", "text\n", "other\n", "modified the beginning"),
        ("api.yaml", "a: 1\npaths: {/x: {}}\n", "a: 1\npaths: {/x: {}, /y: {}}\n", "added paths./y"),
        ("api.yaml", "a: 1\nb: {c: 2}\n", "a: 2\nb: {c: 3}\n", "modified a, b.c"),
        ("api.json", '{"a": [1]}', '{"a": [1, 2], "200": {}}', "added 200; modified a"),
        ("list.yaml", "- 1\n", "- 2\n", "modified the whole text"),
        ("api.yaml", "a: [\n", "a: []\n", "modified the whole text"),
        ("main.py", "x = 1\ndef f(): pass\n", "x = 2\ndef f(): pass\nclass A: pass\n", "added A; modified the module"),
        ("main.py", "def f(): pass\n", "def f(): return 1\n", "modified f"),
        ("main.py", "def f(:\n", "def f(): pass\n", "modified the whole text"),
        ("main.go", "package main\n", "package other\n", "modified the whole text"),
    ],
)
def test_changed_parts_are_named(name: str, before: str | None, after: str, change: str) -> None:
    assert str(compare_documents(before, after, name)) == change
