"""The page about the machine is what the machine says of itself."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.core.machine.diagram import diagram, page
from pytest_loop.core.machine.run_machine import TRANSITIONS
from pytest_loop.core.model.vocabulary import Place, Reason

PAGE = Path(__file__).parents[3] / "docs" / "machine.md"
AGAIN = """python -c "from pytest_loop.core.machine.diagram import page; print(page(), end='')" > docs/machine.md"""


def test_the_page_about_the_machine_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"write it again: {AGAIN}"
    assert AGAIN in page()


def test_every_transition_is_in_the_diagram() -> None:
    lines = diagram().splitlines()
    for (place, kind), targets in TRANSITIONS.items():
        for target in targets:
            assert any(
                line.strip().startswith(f"{place.value} --> {target.value}: ") and kind.value in line for line in lines
            )
    assert len(set(lines)) == len(lines)


def test_every_place_can_be_reached_and_left() -> None:
    ends = {target for targets in TRANSITIONS.values() for target in targets}
    assert ends | {Place.PLAN} == set(Place) == {place for place, _ in TRANSITIONS}


def test_every_reason_is_explained() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| ") and "`" in line]
    assert [row.split("`")[1] for row in rows] == [reason.value for reason in _ordered()]
    assert all(len(row.split("|")[-2].strip()) > 5 for row in rows)


def _ordered() -> list[Reason]:
    first = [Reason.PHASE_ERROR, Reason.CALIBRATION]
    return [*first, *(reason for reason in Reason if reason not in first)]
