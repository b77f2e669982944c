"""What agents did in a run, from its events: edits, words, and what each step has cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.event_changes import WORK
from pytest_loop.core.model.run_state import HASH_SHOWN
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.show.html.grid import escaped_size

ROOM = 2 * 1024 * 1024
UNKNOWN = "unknown"
NOBODY = "-"
_STEPS = {kind.value: step for kind, step in WORK.items()}
_EDITS = (Kind.ARTIFACT_CREATED.value, Kind.REFINEMENT_DONE.value)
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SIGNS = {"+": "added", "-": "removed", " ": "same"}
_BY_AGENTS = (Step.PRODUCE, Step.REFINE, Step.PREPARE)


@dataclass(frozen=True)
class Part:
    """Lines of a diff that are of one kind: added, removed, a head, or the same on both sides."""

    kind: str
    text: str


@dataclass(frozen=True)
class Edit:
    """What an agent changed in one step."""

    iteration: int
    step: str
    agent: str
    before: str
    after: str
    changed: tuple[str, ...]
    recalled: tuple[str, ...]
    added: int
    removed: int
    parts: tuple[Part, ...]
    is_left_out: bool
    is_same: bool


def edits(events: Iterable[Event], agents: Sequence[str], room: int = ROOM) -> list[Edit]:
    """Every step in which something was written, the diff of each as far as there is room on the page."""
    found = []
    for event in events:
        if event.event not in _EDITS:
            continue
        payload = event.payload
        diff = _text(payload.get("diff"))
        room -= escaped_size(diff)
        parts = tuple(_parts(diff))
        before, after = (_text(payload.get(name)) for name in ("previous_artifact_hash", "artifact_hash"))
        lines = [(part.kind, part.text.count("\n") + 1) for part in parts]
        found.append(
            Edit(
                iteration=event.iteration,
                step=_STEPS[event.event].value,
                agent=_agent(event, agents),
                before=before[:HASH_SHOWN],
                after=after[:HASH_SHOWN],
                changed=_texts(payload.get("changed")),
                recalled=_texts(payload.get("recalled")),
                added=sum(number for kind, number in lines if kind == "added"),
                removed=sum(number for kind, number in lines if kind == "removed"),
                parts=parts if room >= 0 else (),
                is_left_out=room < 0,
                is_same=bool(after) and before == after,
            )
        )
    return found


def _parts(diff: str) -> Iterator[Part]:
    for kind, lines in groupby(_kinds(diff.split("\n")) if diff else (), key=itemgetter(0)):
        yield Part(kind, "\n".join(line for _, line in lines))


def _kinds(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line with its kind; a hunk says how long it is, so that a removed `-- x` is not taken for a head."""
    old = new = 0
    for line in lines:
        if found := _HUNK.match(line):
            old, new = (int(count or 1) for count in found.groups())
        kind = _SIGNS.get(line[:1], "head") if old > 0 or new > 0 else "head"
        old -= kind in ("removed", "same")
        new -= kind in ("added", "same")
        if kind == "head" and not found:
            old = new = 0
        yield kind, line


@dataclass(frozen=True)
class Remark:
    """What an agent said to the person, or what went wrong in a step."""

    iteration: int
    step: str
    agent: str
    text: str
    is_error: bool


def remarks(events: Iterable[Event]) -> list[Remark]:
    """Everything that agents said, and every step that went wrong."""
    found = []
    for event in events:
        payload, is_error = event.payload, event.event == Kind.PHASE_ERROR.value
        text = _text(payload.get("reason")) if is_error else _text(payload.get("said"))
        if text and (is_error or event.event in _EDITS):
            step = _text(payload.get("step")) or _step(event)
            found.append(Remark(event.iteration, step, _text(payload.get("agent")), text, is_error))
    return found


@dataclass(frozen=True)
class Entry:
    """One step in the ledger, in words: what is not known is said to be so."""

    iteration: int
    phase: str
    step: str
    agent: str
    seconds: str
    tokens: str
    cost: str
    is_error: bool = False


@dataclass(frozen=True)
class Ledger:
    """All steps, and their sums."""

    entries: tuple[Entry, ...]
    seconds: str
    tokens: str
    cost: str


def ledger(events: Sequence[Event], agents: Sequence[str]) -> Ledger:
    """What each step took; `agents` are those that the run was given."""
    steps = [event for event in events if event.event in (*_STEPS, Kind.PHASE_ERROR.value)]
    entries = [_entry(one, after, agents) for one, after in pairwise([*steps, None]) if one is not None]
    known = [event.payload for event in steps]
    used = [one["usage"] for one in known if isinstance(one.get("usage"), dict)]
    return Ledger(
        tuple(entries),
        seconds=_seconds(_sum(known, "seconds")),
        tokens=_at_least(_tokens(_sum(used, "tokens")), [one.tokens for one in entries]),
        cost=_at_least(_cost(_sum(used, "cost_usd")), [one.cost for one in entries]),
    )


def _at_least(whole: str, parts: Sequence[str]) -> str:
    """A sum of which parts are not known."""
    return f"at least {whole}" if whole != UNKNOWN and UNKNOWN in parts else whole


def _entry(event: Event, following: Event | None, agents: Sequence[str]) -> Entry:
    payload = event.payload
    name = _text(payload.get("step")) or _step(event)
    usage = payload.get("usage") if isinstance(payload.get("usage"), dict) else {}
    beside = _beside(event, following)
    is_asked = "agent" in payload or bool(usage) or name in _BY_AGENTS
    return Entry(
        iteration=event.iteration,
        phase=event.phase.value,
        step=name,
        agent=_agent(event, agents) if is_asked else NOBODY,
        seconds=f"with {beside}" if beside else _seconds(_number(payload, "seconds")),
        tokens=_tokens(_number(usage, "tokens")) if is_asked else NOBODY,
        cost=_cost(_number(usage, "cost_usd")) if is_asked else NOBODY,
        is_error=event.event == Kind.PHASE_ERROR.value,
    )


def _agent(event: Event, agents: Sequence[str]) -> str:
    """Who did it; where the event does not say so, the only one who could have."""
    only = agents[0] if len(agents) == 1 and event.event != Kind.EVALUATION_DONE.value else UNKNOWN
    return _text(event.payload.get("agent")) or only


def _beside(event: Event, following: Event | None) -> str:
    """The step that ran beside this one, with which its time is counted; empty where there was none."""
    pair = {Kind.ARTIFACT_CREATED.value, Kind.CHECKS_PREPARED.value}
    if following is None or {event.event, following.event} != pair or event.payload.get("seconds") != 0:
        return ""
    return _step(following)


def _step(event: Event) -> str:
    return _STEPS[event.event].value if event.event in _STEPS else event.step


def _number(found: Any, name: str) -> float | None:
    value = found.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _sum(found: Iterable[Any], name: str) -> float | None:
    known = [number for one in found if (number := _number(one, name)) is not None]
    return sum(known) if known else None


def _seconds(number: float | None) -> str:
    if number is None:
        return UNKNOWN
    return f"{number:.1f} s" if number >= 1 else f"{number * 1000:.0f} ms"


def _tokens(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _cost(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.4g} USD"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
