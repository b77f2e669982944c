"""Tell apart the files of the interpreter and its environment, of the project, and others."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class Locations:
    """The folders of one project and its interpreter; an environment may be inside the project, or around it."""

    def __init__(self, root: Path) -> None:
        resolved = root.resolve()
        prefixes = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
        self._installed = tuple(f"{prefix}{os.sep}" for prefix in prefixes if not resolved.is_relative_to(prefix))
        self._project = tuple({f"{path}{os.sep}" for path in (root, resolved)})

    def is_installed(self, path: str) -> bool:
        """Return whether a path belongs to the interpreter or its environment."""
        return path.startswith(self._installed) or f"{os.path.realpath(path)}{os.sep}".startswith(self._installed)

    def is_in_project(self, path: str) -> bool:
        """Return whether a path belongs to the project, which may change at any time."""
        return f"{path}{os.sep}".startswith(self._project) and not self.is_installed(path)
