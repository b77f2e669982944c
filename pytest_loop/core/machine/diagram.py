"""The page about the machine, drawn from its own table, so that it cannot be out of date."""

from __future__ import annotations

import inspect

from pytest_loop.core.machine.run_machine import ANYWHERE, FIRST_PLACES, TRANSITIONS
from pytest_loop.core.machine.stop_reasons import INTERRUPTIONS, PREDICATES
from pytest_loop.core.model.vocabulary import Kind, Place

_PAGE = """\
# The run as a machine

This page is drawn from the tables in `run_machine.py` and `stop_reasons.py` of `pytest_loop/core/machine/`:

    python -c "from pytest_loop.core.machine.diagram import page; print(page(), end='')" > docs/machine.md

A run stands at one of six places. `commands(state)` says what must happen there: nothing exactly when the run is over.
`step(state, event)` gives the state after what has happened, and refuses what cannot happen there. Where an arrow
branches, a run goes to the first place that has something to do: `PRODUCE_PREPARE` and `PREPARE` are passed by where
nothing is missing, and a phase B that adds no rules is not evaluated again.

```mermaid
{diagram}
```

{anywhere} can happen at every place; the last two end the run, from wherever it stands.
`limits_raised` opens a run again that a limit has stopped. Unknown events change nothing.

## Why a run ends

The first reason that holds wins. All are asked at `CRITIQUE`, before anything else happens there, unless phase A
passes: then B decides.

| | reason | status | asked elsewhere too | when |
|---|---|---|---|---|
{reasons}
"""


def page() -> str:
    """The whole of `docs/machine.md`."""
    anywhere = ", ".join(f"`{kind.value}`" for kind in Kind if kind in ANYWHERE)
    return _PAGE.format(diagram=diagram(), anywhere=anywhere, reasons="\n".join(_reasons()))


def diagram() -> str:
    """The transitions as a Mermaid state diagram."""
    arrows: dict[tuple[str, str], list[str]] = {("[*]", place.value): ["run_started"] for place in FIRST_PLACES}
    for (place, kind), targets in TRANSITIONS.items():
        for target in targets:
            arrows.setdefault((place.value, target.value), []).append(kind.value)
    arrows[Place.CRITIQUE.value, "[*]"] = [Kind.STOPPED.value]
    lines = [f"    {start} --> {end}: {', '.join(kinds)}" for (start, end), kinds in arrows.items()]
    return "\n".join(["stateDiagram-v2", *lines])


def _reasons() -> list[str]:
    rows = []
    for number, (reason, holds) in enumerate(PREDICATES, 1):
        elsewhere = "yes" if reason in INTERRUPTIONS else ""
        when = inspect.getdoc(holds) or ""
        rows.append(f"| {number} | `{reason.value}` | {reason.status.value} | {elsewhere} | {when.rstrip('.')} |")
    return rows
