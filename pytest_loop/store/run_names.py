"""Names of runs, and the folder that holds them."""

from __future__ import annotations

import re
from pathlib import Path

ALIAS_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{1,62}[a-z0-9]")
ALL_RUNS = "all"


def find_default_folder(project: Path) -> str:
    """Return `.loop`, or the folder of AI Factory in a project that has it."""
    return ".ai-factory/evolution" if (project / ".ai-factory").is_dir() else ".loop"


def make_alias(task: str) -> str:
    """Return a run name made from the words of a task: lowercase words with hyphens, 3 to 64 characters."""
    words = "-".join(re.findall(r"[a-z0-9]+", task.lower()))[:40].strip("-")
    return words if len(words) >= 3 and words != ALL_RUNS else f"task-{words}".strip("-")
