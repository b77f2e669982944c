"""Render tables of runs, events and iterations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import MeasurementDone, RegressionDetected
from pytest_loop.core.events.run_payloads import CritiqueDone, EditPayload, Payload, PlanCreated
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH, RunState
from pytest_loop.core.reporting.iteration_records import IterationRecord, build_analysis
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import list_names
from pytest_loop.store.clock import format_local_time

_SUMMARY_FIELDS = (
    "case",
    "score",
    "passed",
    "reason",
    "artifact_hash",
    "exit_signal",
    "truth",
    "action",
    "theory",
    "text",
)
_COLUMNS = ["iteration", "phase", "quality", "change", "verified", "tokens", "cost", "seconds"]
_TRAJECTORY_WORDS = {
    "improving": "most iterations raised the score",
    "declining": "most iterations lowered the score",
    "stable": "most iterations changed the score by no more than 0.02",
    "fluctuating": "some iterations raised the score, others did not",
}


def render_status_table(states: Iterable[tuple[RunState, str]], *, is_detailed: bool) -> Iterator[str]:
    """Render one row for each run and its status; `is_detailed` shows fields of `run.json`."""
    if is_detailed:
        rows = [["alias", "status", "iteration", "phase", "current_step", "last_score", "updated_at", "seconds"]]
    else:
        rows = [["run", "status", "iteration", "score", "changed"]]
    for state, status in states:
        score = format_score(state.last_score)
        if is_detailed:
            seconds = f"{state.completed_phase_seconds:.0f}/{state.max_completed_phase_seconds or 'none'}"
            place = [str(state.iteration), state.phase.value, state.current_step.value]
            rows.append([state.task_alias, status, *place, score, state.updated_at, seconds])
        else:
            place = [f"{state.iteration} of {state.max_iterations}", score, format_local_time(state.updated_at)]
            rows.append([state.task_alias, status, *place])
    yield from _render_table(rows)


def _render_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Render rows in columns that are as wide as needed."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def render_history(events: Iterable[Event]) -> Iterator[str]:
    """Render one line for each event."""
    for event in events:
        place = f"{event.ts}  {event.iteration:>3} {event.phase.value}"
        yield f"{place} {event.event:<18}  {_summarize_payload(event.payload)}"


def _summarize_payload(payload: Payload) -> str:
    """Return the most important fields of a payload, including payloads in another tool's form."""
    parts = [payload.metrics] if isinstance(payload, MeasurementDone) else []
    for name in _SUMMARY_FIELDS:
        value = getattr(payload, name, None)
        if value not in (None, ""):
            text = str(value.value if isinstance(value, Enum) else value)
            text = text[:SHORT_HASH_LENGTH] if name == "artifact_hash" else text
            parts.append(f"{name}={shorten(text, 80)}")
    if isinstance(payload, PlanCreated) and payload.plan:
        parts.append(f"plan={format_plan(payload.plan)}")
    if isinstance(payload, EditPayload) and payload.change:
        parts.append(f"changed={payload.change}")
    if isinstance(payload, CritiqueDone) and payload.issues:
        parts.append(f"issues={len(payload.issues)}")
    if isinstance(payload, RegressionDetected):
        parts.append(f"regressions={','.join(payload.regressions)}")
    return " ".join(parts)


def format_plan(plan: Sequence[str]) -> str:
    """Return a plan in one line: its first step, and the number of further steps."""
    return list_names([shorten(step, 100) for step in plan], 1)


def render_iterations(state: RunState, records: Sequence[IterationRecord]) -> Iterator[str]:
    """Render the iterations as a table if there are several, the best one, and the trajectory."""
    if len(records) < 2:
        return
    yield ""
    yield from _render_table([_COLUMNS, *map(_build_row, records)])
    analysis = build_analysis(state, records)
    if analysis["best_iteration"] is not None:
        worse = ", and the last is worse" if analysis["degradation_detected"] else ""
        yield f"best: iteration {analysis['best_iteration']} with {analysis['best_quality']:g} of 100{worse}"
    if analysis["trajectory"]:
        yield f"trajectory: {analysis['trajectory']} ({_TRAJECTORY_WORDS[analysis['trajectory']]})"
    if analysis["unobservable"]:
        names = " and ".join(analysis["unobservable"])
        yield f"unobservable: no agent reports {names}, so this limit cannot end the run"


def _build_row(record: IterationRecord) -> list[str]:
    return [
        str(record.iteration),
        record.phase.value,
        "unknown" if record.quality_score is None else f"{record.quality_score:g}",
        f"{record.quality_delta:+g}" if record.baseline_comparison else "",
        record.verification_status.value,
        "unknown" if record.tokens_used is None else f"{record.tokens_used:,}",
        "unknown" if record.token_cost_usd is None else f"{record.token_cost_usd:.4g}",
        f"{record.execution_time_ms / 1000:.1f}",
    ]


def describe_trajectory(state: RunState, records: Sequence[IterationRecord]) -> str:
    """Describe the trajectory, and whether the last iteration is worse than the best; empty if unknown."""
    analysis = build_analysis(state, records)
    sentences = [f"{_TRAJECTORY_WORDS[analysis['trajectory']].capitalize()}."] if analysis["trajectory"] else []
    if analysis["degradation_detected"]:
        sentences.append(f"The last iteration is worse than iteration {analysis['best_iteration']}.")
    return " ".join(sentences)
