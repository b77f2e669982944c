"""A check that a rule calls."""

from __future__ import annotations

from pathlib import Path

from basket import label


def in_euro(_artifact: Path | None, _workspace: Path) -> None:
    assert label(250) == "2.50 EUR", f"expected 2.50 EUR, found {label(250)}"
