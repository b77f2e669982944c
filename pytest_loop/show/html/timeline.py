"""Build the timeline of a run: the rows of each iteration, in the order of the events."""

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
from pytest_loop.core.model.evaluation import Complaint
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH
from pytest_loop.core.text.wording import name_step
from pytest_loop.show.html.diff_view import DiffRenderer, DiffView
from pytest_loop.show.html.lanes import Lanes, build_lanes
from pytest_loop.show.html.ledger import find_agent, find_step
from pytest_loop.show.html.texts import format_cost, format_seconds, format_tokens
from pytest_loop.show.job_summary import EvaluationEntry, list_evaluations


@dataclass(frozen=True)
class Edit:
    """The edit of an agent in one step; `facts` are its time, tokens and cost, `before` and `after` are hashes."""

    step: str
    agent: str
    facts: tuple[str, ...]
    diff: DiffView
    before: str
    after: str
    payload: EditPayload

    @property
    def is_unchanged(self) -> bool:
        return bool(self.after) and self.before == self.after


@dataclass(frozen=True)
class EvaluationView:
    """One evaluation; `new_failures` are the failures that the previous evaluation did not have."""

    entry: EvaluationEntry
    new_failures: tuple[Complaint, ...]
    seconds: str
    lanes: Lanes | None = None


@dataclass(frozen=True)
class Row:
    """One row of the timeline; `kind` names the part of the template that shows `value`."""

    kind: str
    value: Any
    step: str = ""
    agent: str = ""


@dataclass
class Iteration:
    """One iteration, and its rows in order."""

    number: int
    rows: list[Row] = field(default_factory=list)

    @property
    def edits(self) -> list[Edit]:
        return [row.value for row in self.rows if row.kind == "edit"]

    @property
    def last_evaluation(self) -> EvaluationView | None:
        return next((row.value for row in reversed(self.rows) if row.kind == "evaluation"), None)


def build_timeline(events: Sequence[Event], agents: Sequence[str], diffs: DiffRenderer) -> list[Iteration]:
    """Build the iterations of a run, without events that have nothing to show."""
    evaluations = _build_evaluations(events)
    iterations: list[Iteration] = []
    for event in events:
        if row := _build_row(event, evaluations, agents, diffs):
            if not iterations or iterations[-1].number != event.iteration:
                iterations.append(Iteration(event.iteration))
            iterations[-1].rows.append(row)
    return iterations


def _build_row(
    event: Event, evaluations: Iterator[EvaluationView], agents: Sequence[str], diffs: DiffRenderer
) -> Row | None:
    match event.payload:
        case EvaluationDone():
            return Row("evaluation", next(evaluations))
        case EditPayload() as edit:
            return Row("edit", _build_edit(event, edit, agents, diffs))
        case PhaseError(reason=reason, agent=agent) if reason:
            return Row("error", reason, name_step(find_step(event)), agent)
        case PlanCreated(plan=plan) if plan:
            return Row("plan", plan)
        case CritiqueDone() as critique if critique.issues:
            return Row("critique", critique)
        case Answered() as answer if answer.text:
            return Row("answer", answer)
        case StepPayload() as step if step.prompt:
            return Row("request", step, name_step(find_step(event)), find_agent(event, agents))
    return None


def _build_evaluations(events: Sequence[Event]) -> Iterator[EvaluationView]:
    payloads = [event.payload for event in events if isinstance(event.payload, EvaluationDone)]
    failing: frozenset[str] = frozenset()
    for entry, payload in zip(list_evaluations(events), payloads, strict=True):
        new_failures = tuple(complaint for complaint in entry.evaluation.failed if complaint.id not in failing)
        lanes = build_lanes(payload.cluster) if payload.cluster else None
        yield EvaluationView(entry, new_failures, format_seconds(payload.seconds) if payload.seconds else "", lanes)
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
        payload=payload,
    )
