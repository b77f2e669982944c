"""How often in a row an agent was kept from stopping, one small file for each of its sessions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.store import disk

_HIDDEN = ".gate"


class BlockCounter:
    """The count of one session; a session that may stop has none."""

    def __init__(self, root: Path, session: str) -> None:
        name = hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:32]
        self.path = root / _HIDDEN / f"{name}.json"

    def read_count(self) -> int:
        """How often in a row; a file that holds no count is taken away, and told."""
        with disk.translate_errors("read", self.path, "try again"):
            data = disk.read_file(self.path)
        if data is None:
            return 0
        try:
            found = json.loads(data)["blocks"]
        except (ValueError, KeyError, TypeError):
            found = None
        if not isinstance(found, int) or found < 0:
            self.reset()
            raise StateError(f"{self.path} is damaged: counting begins anew")
        return found

    def write_count(self, count: int) -> None:
        """Remember the number."""
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, json.dumps({"blocks": count}).encode() + b"\n", durable=False)

    def reset(self) -> None:
        """It may stop: whoever blocks it next begins anew."""
        disk.remove_file(self.path)
