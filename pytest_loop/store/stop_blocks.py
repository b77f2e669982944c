"""Count how often in a row the Stop hook kept an agent from stopping, in one file per conversation of the agent."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pytest_loop.errors import StateError
from pytest_loop.store import disk

_FOLDER = ".gate"


class BlockCounter:
    """The counter of one conversation of an agent; a conversation that may stop has no file."""

    def __init__(self, root: Path, session: str) -> None:
        name = hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:32]
        self.path = root / _FOLDER / f"{name}.json"

    def read_count(self) -> int:
        """Read the counter; delete a damaged one and raise `StateError`."""
        with disk.translate_errors("read", self.path, "try again"):
            data = disk.read_file(self.path)
        if data is None:
            return 0
        try:
            count = json.loads(data)["blocks"]
        except (ValueError, KeyError, TypeError):
            count = None
        if not isinstance(count, int) or count < 0:
            self.reset()
            raise StateError(f"{self.path} is damaged: counting begins anew")
        return count

    def write_count(self, count: int) -> None:
        disk.make_folder(self.path.parent)
        disk.write_atomically(self.path, json.dumps({"blocks": count}).encode() + b"\n", durable=False)

    def reset(self) -> None:
        disk.remove_file(self.path)
