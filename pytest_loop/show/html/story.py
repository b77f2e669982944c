"""What agents did in a run, from its events: edits, words, and what each step has cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EditPayload, PhaseError, RefinementDone, StepPayload
from pytest_loop.core.model.run_state import HASH_SHOWN, Usage
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.show.html.grid import escaped_size

ROOM = 2 * 1024 * 1024
UNKNOWN = "unknown"
NOBODY = "-"
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
        payload = event.payload
        if not isinstance(payload, EditPayload):
            continue
        room -= escaped_size(payload.diff)
        parts = tuple(_parts(payload.diff))
        before = (payload.previous_artifact_hash or "") if isinstance(payload, RefinementDone) else ""
        after = payload.artifact_hash or ""
        lines = [(part.kind, part.text.count("\n") + 1) for part in parts]
        found.append(
            Edit(
                iteration=event.iteration,
                step=_step(event),
                agent=_agent(event, agents),
                before=before[:HASH_SHOWN],
                after=after[:HASH_SHOWN],
                changed=payload.changed or (),
                recalled=payload.recalled,
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
        match event.payload:
            case PhaseError(agent=agent, reason=text) if text:
                found.append(Remark(event.iteration, _step(event), agent, text, is_error=True))
            case EditPayload(agent=agent, report=text) if text:
                found.append(Remark(event.iteration, _step(event), agent, text, is_error=False))
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
    steps = [event for event in events if event.completes or event.kind is Kind.PHASE_ERROR]
    entries = [_entry(one, after, agents) for one, after in pairwise([*steps, None]) if one is not None]
    payloads = [event.payload for event in steps if isinstance(event.payload, StepPayload)]
    return Ledger(
        tuple(entries),
        seconds=_seconds(_sum(payload.seconds for payload in payloads)),
        tokens=_at_least(_tokens(_sum(payload.usage.tokens for payload in payloads)), [one.tokens for one in entries]),
        cost=_at_least(_cost(_sum(payload.usage.cost_usd for payload in payloads)), [one.cost for one in entries]),
    )


def _at_least(whole: str, parts: Sequence[str]) -> str:
    """A sum of which parts are not known."""
    return f"at least {whole}" if whole != UNKNOWN and UNKNOWN in parts else whole


def _entry(event: Event, following: Event | None, agents: Sequence[str]) -> Entry:
    payload = event.payload if isinstance(event.payload, StepPayload) else StepPayload()
    name, usage = _step(event), payload.usage
    beside = _beside(event, following)
    is_asked = bool(payload.agent) or usage != Usage() or name in _BY_AGENTS
    return Entry(
        iteration=event.iteration,
        phase=event.phase.value,
        step=name,
        agent=_agent(event, agents) if is_asked else NOBODY,
        seconds=f"with {beside}" if beside else _seconds(payload.seconds),
        tokens=_tokens(usage.tokens) if is_asked else NOBODY,
        cost=_cost(usage.cost_usd) if is_asked else NOBODY,
        is_error=event.kind is Kind.PHASE_ERROR,
    )


def _agent(event: Event, agents: Sequence[str]) -> str:
    """Who did it; where the event does not say so, the only one who could have."""
    only = agents[0] if len(agents) == 1 and event.kind is not Kind.EVALUATION_DONE else UNKNOWN
    return (event.payload.agent if isinstance(event.payload, StepPayload) else "") or only


def _beside(event: Event, following: Event | None) -> str:
    """The step that ran beside this one, with which its time is counted; empty where there was none."""
    pair = {Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED}
    is_counted_once = isinstance(event.payload, StepPayload) and event.payload.seconds == 0
    if following is None or {event.kind, following.kind} != pair or not is_counted_once:
        return ""
    return _step(following)


def _step(event: Event) -> str:
    """Return the name of a step; an error names the step that failed."""
    payload = event.payload
    if isinstance(payload, PhaseError):
        return payload.step or event.step
    return event.completes.value if event.completes else event.step


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _seconds(number: float | None) -> str:
    if number is None:
        return UNKNOWN
    return f"{number:.1f} s" if number >= 1 else f"{number * 1000:.0f} ms"


def _tokens(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _cost(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.4g} USD"
