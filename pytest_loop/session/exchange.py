"""The folder through which workers of xdist tell the controller what it cannot know; it exists only once one does."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_loop.core.model.rules import Plan

_PLAN = "plan.json"
_UNEVEN = "uneven"


class Exchange:
    """Named by the controller; every worker finds the same."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(tempfile.gettempdir()) / f"pytest-loop-{uuid.uuid4().hex}"

    def leave(self, plan: Plan) -> None:
        """Every worker makes the same plan; the first one leaves it for the controller, which has no items."""
        if not (self.path / _PLAN).exists():
            draft = self._made() / f"plan-{uuid.uuid4().hex}"
            draft.write_text(plan.model_dump_json(), encoding="utf-8")
            draft.replace(self.path / _PLAN)

    def left(self) -> str | None:
        """The plan as JSON, once somebody has left it."""
        try:
            return (self.path / _PLAN).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def say_uneven(self) -> None:
        """Slow rules stand among cheap ones."""
        (self._made() / _UNEVEN).touch()

    @property
    def is_uneven(self) -> bool:
        return (self.path / _UNEVEN).exists()

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _made(self) -> Path:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.path
