"""The work of agents from the events of a run: edits, reports, and the cost of each step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from operator import itemgetter

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EditPayload, PhaseError, RefinementDone, StepPayload
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH, Usage
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.show.html.rule_grid import measure_escaped_size

ROOM = 2 * 1024 * 1024
UNKNOWN = "unknown"
NONE = "-"
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SIGNS = {"+": "added", "-": "removed", " ": "same"}
_BY_AGENTS = (Step.PRODUCE, Step.REFINE, Step.PREPARE)


@dataclass(frozen=True)
class Part:
    """Lines of a diff of one kind: added, removed, head, or same."""

    kind: str
    text: str


@dataclass(frozen=True)
class Edit:
    """The edit of an agent in one step."""

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


def list_edits(events: Iterable[Event], agents: Sequence[str], room: int = ROOM) -> list[Edit]:
    """List all edits, with their diffs as far as there is room on the page."""
    edits = []
    for event in events:
        payload = event.payload
        if not isinstance(payload, EditPayload):
            continue
        room -= measure_escaped_size(payload.diff)
        parts = tuple(_split_diff(payload.diff))
        before = (payload.previous_artifact_hash or "") if isinstance(payload, RefinementDone) else ""
        after = payload.artifact_hash or ""
        lines = [(part.kind, part.text.count("\n") + 1) for part in parts]
        edits.append(
            Edit(
                iteration=event.iteration,
                step=_name_step(event),
                agent=_find_agent(event, agents),
                before=before[:SHORT_HASH_LENGTH],
                after=after[:SHORT_HASH_LENGTH],
                changed=payload.changed or (),
                recalled=payload.recalled,
                added=sum(number for kind, number in lines if kind == "added"),
                removed=sum(number for kind, number in lines if kind == "removed"),
                parts=parts if room >= 0 else (),
                is_left_out=room < 0,
                is_same=bool(after) and before == after,
            )
        )
    return edits


def _split_diff(diff: str) -> Iterator[Part]:
    for kind, lines in groupby(_classify_lines(diff.split("\n")) if diff else (), key=itemgetter(0)):
        yield Part(kind, "\n".join(line for _, line in lines))


def _classify_lines(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return each line with its kind; the length of a hunk tells a removed `-- x` from a head."""
    old = new = 0
    for line in lines:
        if hunk := _HUNK.match(line):
            old, new = (int(count or 1) for count in hunk.groups())
        kind = _SIGNS.get(line[:1], "head") if old > 0 or new > 0 else "head"
        old -= kind in ("removed", "same")
        new -= kind in ("added", "same")
        if kind == "head" and not hunk:
            old = new = 0
        yield kind, line


@dataclass(frozen=True)
class Remark:
    """The report of an agent, or the error of a step."""

    iteration: int
    step: str
    agent: str
    text: str
    is_error: bool


def list_remarks(events: Iterable[Event]) -> list[Remark]:
    """List all reports of agents and all errors of steps."""
    remarks = []
    for event in events:
        match event.payload:
            case PhaseError(agent=agent, reason=text) if text:
                remarks.append(Remark(event.iteration, _name_step(event), agent, text, is_error=True))
            case EditPayload(agent=agent, report=text) if text:
                remarks.append(Remark(event.iteration, _name_step(event), agent, text, is_error=False))
    return remarks


@dataclass(frozen=True)
class Entry:
    """One step in the ledger as text; unknown values are called so."""

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
    """All steps and their sums."""

    entries: tuple[Entry, ...]
    seconds: str
    tokens: str
    cost: str


def build_ledger(events: Sequence[Event], agents: Sequence[str]) -> Ledger:
    """Build the ledger of all steps; `agents` are those of the run."""
    steps = [event for event in events if event.completes or event.kind is Kind.PHASE_ERROR]
    entries = [_build_entry(event, next_event, agents) for event, next_event in zip_longest(steps, steps[1:])]
    payloads = [event.payload for event in steps if isinstance(event.payload, StepPayload)]
    tokens = _sum(payload.usage.tokens for payload in payloads)
    cost = _sum(payload.usage.cost_usd for payload in payloads)
    return Ledger(
        tuple(entries),
        seconds=_format_seconds(_sum(payload.seconds for payload in payloads)),
        tokens=_mark_partial(_format_tokens(tokens), [entry.tokens for entry in entries]),
        cost=_mark_partial(_format_cost(cost), [entry.cost for entry in entries]),
    )


def _mark_partial(total: str, parts: Sequence[str]) -> str:
    """Mark a sum of which parts are unknown."""
    return f"at least {total}" if total != UNKNOWN and UNKNOWN in parts else total


def _build_entry(event: Event, next_event: Event | None, agents: Sequence[str]) -> Entry:
    payload = event.payload if isinstance(event.payload, StepPayload) else StepPayload()
    name, usage = _name_step(event), payload.usage
    partner = _find_parallel_step(event, next_event)
    is_asked = bool(payload.agent) or usage != Usage() or name in _BY_AGENTS
    return Entry(
        iteration=event.iteration,
        phase=event.phase.value,
        step=name,
        agent=_find_agent(event, agents) if is_asked else NONE,
        seconds=f"with {partner}" if partner else _format_seconds(payload.seconds),
        tokens=_format_tokens(usage.tokens) if is_asked else NONE,
        cost=_format_cost(usage.cost_usd) if is_asked else NONE,
        is_error=event.kind is Kind.PHASE_ERROR,
    )


def _find_agent(event: Event, agents: Sequence[str]) -> str:
    """Return the agent of an event, or else the only agent of the run."""
    only = agents[0] if len(agents) == 1 and event.kind is not Kind.EVALUATION_DONE else UNKNOWN
    return (event.payload.agent if isinstance(event.payload, StepPayload) else "") or only


def _find_parallel_step(event: Event, next_event: Event | None) -> str:
    """Return the step that ran in parallel and includes the time of this one, or an empty text."""
    pair = {Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED}
    is_counted_once = isinstance(event.payload, StepPayload) and event.payload.seconds == 0
    if next_event is None or {event.kind, next_event.kind} != pair or not is_counted_once:
        return ""
    return _name_step(next_event)


def _name_step(event: Event) -> str:
    """Return the name of a step; an error names the step that failed."""
    payload = event.payload
    if isinstance(payload, PhaseError):
        return payload.step or event.step
    return event.completes.value if event.completes else event.step


def _sum(numbers: Iterable[float | None]) -> float | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None


def _format_seconds(number: float | None) -> str:
    if number is None:
        return UNKNOWN
    return f"{number:.1f} s" if number >= 1 else f"{number * 1000:.0f} ms"


def _format_tokens(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _format_cost(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.4g} USD"
