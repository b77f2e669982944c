"""The timeline of a run: what happened in each iteration, in the order of the events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    Answered,
    CritiqueDone,
    EditPayload,
    EvaluationDone,
    PhaseError,
    PlanCreated,
    RefinementDone,
    StepPayload,
)
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH
from pytest_loop.core.text.wording import name_step
from pytest_loop.show.html.diff_view import DiffRenderer, DiffView
from pytest_loop.show.html.ledger import find_agent, find_step
from pytest_loop.show.html.texts import format_cost, format_seconds, format_tokens
from pytest_loop.show.job_summary import EvaluationEntry, list_evaluations


@dataclass(frozen=True)
class Edit:
    """The edit of an agent in one step; `facts` are its time, tokens and cost as far as they are known."""

    step: str
    agent: str
    facts: tuple[str, ...]
    diff: DiffView
    before: str
    after: str
    recalled: tuple[str, ...]
    report: str
    prompt: str
    answer: str

    @property
    def is_same(self) -> bool:
        return bool(self.after) and self.before == self.after


@dataclass(frozen=True)
class JudgedEntry:
    """One evaluation beside the one before; `new` are failures that the one before did not have."""

    entry: EvaluationEntry
    new: tuple[Any, ...]
    seconds: str


@dataclass(frozen=True)
class Item:
    """One row of the timeline; `kind` names the part of the template that shows `value`."""

    kind: str
    value: Any
    step: str = ""
    agent: str = ""


@dataclass
class Iteration:
    """One iteration, and its rows in order."""

    number: int
    items: list[Item] = field(default_factory=list)

    @property
    def evaluations(self) -> list[JudgedEntry]:
        return [item.value for item in self.items if item.kind == "evaluation"]

    @property
    def edits(self) -> list[Edit]:
        return [item.value for item in self.items if item.kind == "edit"]


def build_timeline(events: Sequence[Event], agents: Sequence[str], diffs: DiffRenderer) -> list[Iteration]:
    """Build the iterations of a run; steps that say nothing are left out."""
    evaluations = iter(_list_evaluations(events))
    iterations: list[Iteration] = []
    for event in events:
        if isinstance(event.payload, EvaluationDone):
            item: Item | None = Item("evaluation", next(evaluations))
        elif isinstance(event.payload, EditPayload):
            item = Item("edit", _build_edit(event, event.payload, agents, diffs))
        else:
            item = _build_item(event, agents)
        if item:
            if not iterations or iterations[-1].number != event.iteration:
                iterations.append(Iteration(event.iteration))
            iterations[-1].items.append(item)
    return iterations


def _build_item(event: Event, agents: Sequence[str]) -> Item | None:
    match event.payload:
        case PhaseError(reason=reason, agent=agent) if reason:
            return Item("error", reason, name_step(find_step(event)), agent)
        case PlanCreated(plan=plan) if plan:
            return Item("plan", plan)
        case CritiqueDone() as critique if critique.issues:
            return Item("critique", critique)
        case Answered() as answer if answer.text:
            return Item("answer", answer)
        case StepPayload() as step if step.prompt:
            return Item("request", step, name_step(find_step(event)), find_agent(event, agents))
    return None


def _list_evaluations(events: Sequence[Event]) -> Iterator[JudgedEntry]:
    payloads = [event.payload for event in events if isinstance(event.payload, EvaluationDone)]
    failing: frozenset[str] = frozenset()
    for entry, payload in zip(list_evaluations(events), payloads, strict=True):
        new = tuple(complaint for complaint in entry.evaluation.failed if complaint.id not in failing)
        yield JudgedEntry(entry, new, format_seconds(payload.seconds) if payload.seconds else "")
        failing = frozenset(complaint.id for complaint in entry.evaluation.failed)


def _build_edit(event: Event, payload: EditPayload, agents: Sequence[str], diffs: DiffRenderer) -> Edit:
    before = (payload.previous_artifact_hash or "") if isinstance(payload, RefinementDone) else ""
    usage = payload.usage
    facts = (
        format_seconds(payload.seconds) if payload.seconds else "",
        f"{format_tokens(usage.tokens)} tokens" if usage.tokens else "",
        format_cost(usage.cost_usd) if usage.cost_usd else "",
    )
    return Edit(
        step=name_step(find_step(event)),
        agent=find_agent(event, agents),
        facts=tuple(filter(None, facts)),
        diff=diffs.render(payload.diff),
        before=before[:SHORT_HASH_LENGTH],
        after=(payload.artifact_hash or "")[:SHORT_HASH_LENGTH],
        recalled=payload.recalled,
        report=payload.report,
        prompt=payload.prompt,
        answer=payload.answer,
    )
