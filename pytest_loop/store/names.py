"""What runs are called, where they lie, and what time it is."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

ALIAS = re.compile(r"[a-z0-9][a-z0-9-]{1,62}[a-z0-9]")
EVERY = "all"


def default_root(project: Path) -> str:
    """`.loop`, or the folder of AI Factory where a project has that."""
    return ".ai-factory/evolution" if (project / ".ai-factory").is_dir() else ".loop"


def now() -> str:
    """The time as the files have it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> float:
    """A time from a file, in seconds."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def slug(task: str) -> str:
    """A name for a run from the words of its task: lowercase words with hyphens, 3 to 64 characters."""
    words = "-".join(re.findall(r"[a-z0-9]+", task.lower()))[:40].strip("-")
    return words if len(words) >= 3 and words != EVERY else f"task-{words}".strip("-")
