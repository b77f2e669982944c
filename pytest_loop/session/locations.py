"""Where modules come from: the interpreter and its environment, the project, or elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class Places:
    """Of one project; an environment may lie inside of it, and it inside the folder of an interpreter."""

    def __init__(self, root: Path) -> None:
        resolved = root.resolve()
        found = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
        self.prefixes = tuple(prefix for prefix in found if not resolved.is_relative_to(prefix))
        self._installed = tuple(f"{prefix}{os.sep}" for prefix in self.prefixes)
        self._own = tuple({f"{path}{os.sep}" for path in (root, resolved)})

    def is_installed(self, path: str) -> bool:
        """Whether it belongs to the interpreter or its environment."""
        return path.startswith(self._installed) or f"{os.path.realpath(path)}{os.sep}".startswith(self._installed)

    def is_own(self, path: str) -> bool:
        """Whether it belongs to the project, which may change at any time."""
        return f"{path}{os.sep}".startswith(self._own) and not self.is_installed(path)
