"""Generate the page `docs/machine.md` from the tables of the machines."""

from __future__ import annotations

import inspect
from typing import Any

from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import ANYWHERE, RUN_MACHINE, Machine
from pytest_loop.core.machine.stop_reasons import STOP_ROWS
from pytest_loop.core.model.vocabulary import Kind, Place

_PAGE = """\
# The run as a machine

This page is generated from the tables in `pytest_loop/core/machine/`:

    python -c "from pytest_loop.core.machine.diagram import render_page; print(render_page(), end='')" > docs/machine.md

A run is always at one of six places. `next_commands(state)` returns the commands for that place. It returns none if and
only if the run is over. `apply(state, event)` returns the state after an event, and refuses an event that cannot happen
there. If several arrows have the same event, the run goes to the first place that has work to do. `PRODUCE_PREPARE` and
`PREPARE` are skipped if nothing is missing. A phase B that adds no rules is not evaluated again.

```mermaid
{run}
```

{anywhere} can happen at every place. The last two end the run.
`limits_raised` reopens a run that a limit has stopped, `answered` every run that is not a success.
Unknown events change nothing.

An experiment is a run over the cases of a workload. It has its own machine:

```mermaid
{experiment}
```

## Why a run ends

The first reason that holds wins. All reasons are checked at `CRITIQUE`, before any other work there. If phase A passes,
phase B decides instead. Some reasons are also checked at other places.

| | reason | status | checked elsewhere | when |
|---|---|---|---|---|
{reasons}
"""


def render_page() -> str:
    """Return the text of `docs/machine.md`."""
    return _PAGE.format(
        run=render_diagram(RUN_MACHINE),
        experiment=render_diagram(EXPERIMENT_MACHINE),
        anywhere=", ".join(f"`{kind.value}`" for kind in Kind if kind in ANYWHERE),
        reasons="\n".join(_render_reasons()),
    )


def render_diagram(machine: Machine[Any]) -> str:
    """Return the transitions of a machine as a Mermaid state diagram."""
    arrows: dict[tuple[str, str], list[str]] = {("[*]", place.value): ["run_started"] for place in machine.first_places}
    for (place, kind), targets in machine.transitions.items():
        for target in targets:
            arrows.setdefault((place.value, target.value), []).append(kind.value)
    arrows[Place.CRITIQUE.value, "[*]"] = [Kind.STOPPED.value]
    lines = [f"    {start} --> {end}: {', '.join(kinds)}" for (start, end), kinds in arrows.items()]
    return "\n".join(["stateDiagram-v2", *lines])


def _render_reasons() -> list[str]:
    lines = []
    for number, row in enumerate(STOP_ROWS, 1):
        elsewhere = "yes" if row.is_interruption else ""
        when = (inspect.getdoc(row.holds) or "").rstrip(".")
        lines.append(f"| {number} | `{row.reason.value}` | {row.status.value} | {elsewhere} | {when} |")
    return lines
