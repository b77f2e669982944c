"""The generated documentation of the machine."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import RUN_MACHINE, Machine
from pytest_loop.core.model.vocabulary import Place, Reason

WRITER = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "write_reference.py"))


@pytest.mark.parametrize("machine", [RUN_MACHINE, EXPERIMENT_MACHINE])
def test_every_transition_is_in_the_diagram(machine: Machine[Any]) -> None:
    lines = WRITER["render_diagram"](machine).splitlines()
    for (place, kind), targets in machine.transitions.items():
        for target in targets:
            assert any(
                line.strip().startswith(f"{place.value} --> {target.value}: ") and kind.value in line for line in lines
            )
    assert len(set(lines)) == len(lines)


def test_every_place_can_be_reached_and_left() -> None:
    transitions = RUN_MACHINE.transitions
    ends = {target for targets in transitions.values() for target in targets}
    assert ends | {Place.PLAN} == set(Place) == {place for place, _ in transitions}


def test_every_reason_is_explained() -> None:
    rows = [line for line in WRITER["render_machines"]().splitlines() if line.startswith("| ") and "`" in line]
    assert [row.split("`")[1] for row in rows] == [reason.value for reason in Reason]
    assert all(len(row.split("|")[-2].strip()) > 5 for row in rows)
