"""Scenarios that `shipping.py` must pass, called by a rule."""

from __future__ import annotations

import runpy
from decimal import Decimal
from pathlib import Path


def scenarios(artifact: Path, _workspace: Path) -> None:
    cost = runpy.run_path(str(artifact))["shipping_cost"]
    for total, zone, expected in [("10", "home", "4.90"), ("50", "home", "0"), ("50", "abroad", "12.50")]:
        found = cost(Decimal(total), zone)
        assert found == Decimal(expected), f"{artifact.name}: expected {expected} for {total} {zone}, found {found}"
    try:
        cost(Decimal(1), "moon")
    except ValueError:
        return
    raise AssertionError(f"{artifact.name}: expected a ValueError for an unknown zone, found none")
