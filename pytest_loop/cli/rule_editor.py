"""Let the user edit rule files in an editor of their own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pytest_loop.run.console import Console

_USUAL_EDITORS = ("sensible-editor", "nano", "vi")


def edit_files(paths: Sequence[Path], console: Console) -> None:
    """Open files in `$VISUAL`, `$EDITOR` or a usual editor; without one, wait until the user has edited them."""
    words = _choose_editor()
    if words:
        try:
            if subprocess.run([*words, *map(str, paths)], check=False).returncode == 0:
                return
            problem = f"`{words[0]}` failed"
        except OSError as error:
            problem = f"cannot start `{words[0]}` ({error.strerror})"
    else:
        problem = "there is no editor here: EDITOR names one"
    console.read_answer(f"{problem}. Edit {' and '.join(map(str, paths))} elsewhere, then press Enter: ")


def _choose_editor() -> list[str]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(editor)
    except ValueError:  # a quote without an end
        words = [editor]
    return words or [name for name in _USUAL_EDITORS if shutil.which(name)][:1]
