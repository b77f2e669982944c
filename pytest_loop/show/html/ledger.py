"""The ledger of a run: the time, tokens and cost of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import PhaseError, StepPayload
from pytest_loop.core.model.run_state import Usage, sum_known
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.core.text.wording import name_step
from pytest_loop.show.html.texts import UNKNOWN, format_cost, format_seconds, format_tokens

NONE = "-"
_STEPS_OF_AGENTS = (Step.PRODUCE, Step.REFINE, Step.PREPARE)
# A step without an agent that takes fewer seconds is bookkeeping, and not listed.
_MIN_SECONDS = 0.05


@dataclass(frozen=True)
class LedgerEntry:
    """One step in the ledger as text; an unknown value is the word `unknown`."""

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
    """The steps that took time or used an agent, and the sums over all steps."""

    entries: tuple[LedgerEntry, ...]
    seconds: str
    tokens: str
    cost: str

    @property
    def has_tokens(self) -> bool:
        return any(entry.tokens not in (NONE, UNKNOWN, "0") for entry in self.entries)

    @property
    def has_cost(self) -> bool:
        return any(entry.cost not in (NONE, UNKNOWN) for entry in self.entries)


def build_ledger(events: Sequence[Event], agents: Sequence[str]) -> Ledger:
    """Build the ledger of a run; `agents` are the run's agents."""
    steps = [event for event in events if event.completes or event.kind is Kind.PHASE_ERROR]
    rows = [(event, _build_entry(event, after, agents)) for event, after in zip_longest(steps, steps[1:])]
    entries = tuple(entry for event, entry in rows if not _is_bookkeeping(event, entry))
    payloads = [event.payload for event in steps if isinstance(event.payload, StepPayload)]
    return Ledger(
        entries,
        seconds=format_seconds(sum_known(payload.seconds for payload in payloads)),
        tokens=_mark_partial(
            format_tokens(sum_known(payload.usage.tokens for payload in payloads)), [entry.tokens for entry in entries]
        ),
        cost=_mark_partial(
            format_cost(sum_known(payload.usage.cost_usd for payload in payloads)), [entry.cost for entry in entries]
        ),
    )


def _is_bookkeeping(event: Event, entry: LedgerEntry) -> bool:
    seconds = event.payload.seconds if isinstance(event.payload, StepPayload) else None
    return entry.agent == NONE and not entry.is_error and seconds is not None and seconds < _MIN_SECONDS


def _mark_partial(total: str, parts: Sequence[str]) -> str:
    """Return a sum, marked `at least` if some parts are unknown."""
    return f"at least {total}" if total != UNKNOWN and UNKNOWN in parts else total


def _build_entry(event: Event, next_event: Event | None, agents: Sequence[str]) -> LedgerEntry:
    payload = event.payload if isinstance(event.payload, StepPayload) else StepPayload()
    name, usage = find_step(event), payload.usage
    partner = _find_parallel_step(event, next_event)
    has_agent = bool(payload.agent) or usage != Usage() or name in _STEPS_OF_AGENTS
    return LedgerEntry(
        iteration=event.iteration,
        phase=event.phase.value,
        step=name_step(name),
        agent=find_agent(event, agents) if has_agent else NONE,
        seconds=f"with {partner}" if partner else format_seconds(payload.seconds),
        tokens=format_tokens(usage.tokens) if has_agent else NONE,
        cost=format_cost(usage.cost_usd) if has_agent else NONE,
        is_error=event.kind is Kind.PHASE_ERROR,
    )


def find_agent(event: Event, agents: Sequence[str]) -> str:
    """Return the agent of an event, or else the only agent of the run."""
    only_agent = agents[0] if len(agents) == 1 and event.kind is not Kind.EVALUATION_DONE else UNKNOWN
    return (event.payload.agent if isinstance(event.payload, StepPayload) else "") or only_agent


def _find_parallel_step(event: Event, next_event: Event | None) -> str:
    """Return the name of the parallel step whose time includes this step's; empty without one."""
    pair = {Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED}
    is_counted_once = isinstance(event.payload, StepPayload) and event.payload.seconds == 0
    if next_event is None or {event.kind, next_event.kind} != pair or not is_counted_once:
        return ""
    return name_step(find_step(next_event))


def find_step(event: Event) -> str:
    """Return the name of a step; an error names the step that failed."""
    payload = event.payload
    if isinstance(payload, PhaseError):
        return payload.step or event.step
    return event.completes.value if event.completes else event.step
