"""The generated documentation of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.machine.diagram import render_diagram, render_page
from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import RUN_MACHINE, Machine
from pytest_loop.core.model.vocabulary import Place, Reason

PAGE = Path(__file__).parents[3] / "docs" / "machine.md"
RENDER_COMMAND = """python -c "from pytest_loop.core.machine.diagram import render_page; print(render_page(), end='')" > docs/machine.md"""


def test_documentation_of_the_machine_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), f"write it again: {RENDER_COMMAND}"
    assert RENDER_COMMAND in render_page()


@pytest.mark.parametrize("machine", [RUN_MACHINE, EXPERIMENT_MACHINE])
def test_every_transition_is_in_the_diagram(machine: Machine[Any]) -> None:
    lines = render_diagram(machine).splitlines()
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
    rows = [line for line in render_page().splitlines() if line.startswith("| ") and "`" in line]
    assert [row.split("`")[1] for row in rows] == [reason.value for reason in Reason]
    assert all(len(row.split("|")[-2].strip()) > 5 for row in rows)
