"""Render the report of a run as one self-contained HTML page from its events and state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target, parse_reason
from pytest_loop.core.reporting.escalation import ask_question, describe_pattern, list_alternatives
from pytest_loop.core.reporting.iteration_records import build_records
from pytest_loop.show.ending_text import format_resume_command
from pytest_loop.show.html.diff_view import DiffRenderer
from pytest_loop.show.html.ledger import build_ledger
from pytest_loop.show.html.page import render_page
from pytest_loop.show.html.rule_grid import build_grid
from pytest_loop.show.html.score_chart import build_chart
from pytest_loop.show.html.texts import format_moment
from pytest_loop.show.html.timeline import build_timeline
from pytest_loop.show.html.verdict_panel import build_verdict_panel, describe_closing
from pytest_loop.show.job_summary import list_evaluations
from pytest_loop.show.run_tables import describe_trajectory


def render_report(
    state: RunState, events: Sequence[Event], status: str = "", *, change: str = "", document: str = ""
) -> str:
    """Render the page; `status`, if not empty, replaces the status of the state.

    `change` is the diff of all files since the run began; `document` is the text written by a run with an artifact.
    """
    evaluations, diffs = list_evaluations(events), DiffRenderer()
    whole_change, verdict = diffs.render(change), build_verdict_panel(state)
    iterations = build_timeline(events, state.setup.agents, diffs)
    grid = build_grid(state, evaluations, events)
    return render_page(
        "report.html.j2",
        f"{verdict.title}: {state.task_alias}",
        state=state,
        status=status or state.status.value,
        has_files=state.setup.target is Target.WORKSPACE,
        has_phases=state.criteria.has_phase_b,
        verdict=verdict,
        closing=describe_closing(state),
        chart=build_chart(state, evaluations, events),
        trajectory=describe_trajectory(state, build_records(state, events)),
        evaluations=evaluations,
        tampered=[entry for entry in evaluations if entry.evaluation.findings],
        grid=grid,
        cell_letters="".join({letter for rule in grid["rules"] for letter in rule["cells"]}),
        began=format_moment(state.created_at),
        changed=format_moment(state.updated_at),
        change=whole_change,
        document=document,
        iterations=iterations,
        has_edits=any(iteration.edits for iteration in iterations),
        ledger=build_ledger(events, state.setup.agents),
        escalation=_build_escalation(state),
        origin=state.setup.origin,
        resume_command=format_resume_command(state),
    )


def _build_escalation(state: RunState) -> dict[str, Any] | None:
    """Build the escalation of a run that ended without success."""
    if not state.is_over or state.stop.passed:
        return None
    return {
        "pattern": describe_pattern(state),
        "error": state.last_error,
        "blocked": state.signals.blocked,
        "question": ask_question(state, parse_reason(state.stop.reason)),
        "alternatives": list_alternatives(state, parse_reason(state.stop.reason)),
    }
