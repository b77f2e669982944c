"""The page `docs/machine.md`, drawn from the tables of the machines."""

from __future__ import annotations

import inspect
from typing import Any

from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import ANYWHERE, RUN_MACHINE, Machine
from pytest_loop.core.machine.stop_reasons import STOP_ROWS
from pytest_loop.core.model.vocabulary import Kind, Place

_PAGE = """\
# The run as a machine

This page is drawn from the tables of `pytest_loop/core/machine/`:

    python -c "from pytest_loop.core.machine.diagram import render_page; print(render_page(), end='')" > docs/machine.md

A run stands at one of six places. `next_commands(state)` returns what must happen there: nothing exactly when the
run is over. `apply(state, event)` returns the state after an event, and refuses one that cannot happen there. Where an
arrow branches, a run goes to the first place that has something to do: `PRODUCE_PREPARE` and `PREPARE` are passed by
where nothing is missing, and a phase B that adds no rules is not evaluated again.

```mermaid
{run}
```

{anywhere} can happen at every place; the last two end the run, from wherever it stands.
`limits_raised` opens a run again that a limit has stopped. Unknown events change nothing.

An experiment, a run over the cases of a workload, has a machine of its own:

```mermaid
{experiment}
```

## Why a run ends

The first reason that holds wins. All are asked at `CRITIQUE`, before anything else happens there, unless phase A
passes: then B decides.

| | reason | status | asked elsewhere too | when |
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
