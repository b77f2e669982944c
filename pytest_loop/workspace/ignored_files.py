"""Find source files that .gitignore and similar files name: linters leave such source files out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pytest_loop.store import disk
from pytest_loop.workspace.git import Git, GitError

# Files in the languages whose linters leave out what git ignores.
SOURCE_SUFFIXES = (
    *(".py", ".pyi", ".ipynb", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".go", ".rs"),
    *(".rb", ".php", ".java", ".kt", ".c", ".h", ".cc", ".cpp", ".cs", ".css", ".scss"),
)
# An ignore file that ruff and ripgrep read, and git does not.
_OTHER_LIST = ".ignore"


def find_ignored_sources(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the source files that match an ignore file of the project or its clone; none without git."""
    names = [path for path in paths if path.endswith(SOURCE_SUFFIXES)]
    data = b"".join(os.fsencode(name) + b"\0" for name in names)
    words = ("-c", f"core.excludesFile={root / _OTHER_LIST}", "check-ignore", "--no-index", "-z", "--stdin")
    try:
        with disk.translate_errors("ask git about the files of", root):
            # Without the usual options: check-ignore refuses literal pathspecs.
            output = replace(Git.locate(root), options=()).run(*words, data=data)
    except GitError:  # git also fails if nothing is ignored
        return ()
    return tuple(sorted(map(os.fsdecode, filter(None, output.split(b"\0")))))
