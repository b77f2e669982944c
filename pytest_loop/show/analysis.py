"""The table of iterations and the trajectory of the score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.reporting.iteration_records import IterationRecord, build_analysis
from pytest_loop.show.run import render_table

_HEAD = ["iteration", "phase", "quality", "change", "verified", "tokens", "cost", "seconds"]
_WORDS = {
    "improving": "most iterations raised the score",
    "declining": "most iterations lowered the score",
    "stable": "most iterations changed the score by no more than 0.02",
    "fluctuating": "the score went up and down",
}


def render_iterations(state: RunState, records: Sequence[IterationRecord]) -> Iterator[str]:
    """Render the iterations as a table if there are several, the best one, and the trajectory."""
    if len(records) < 2:
        return
    yield ""
    yield from render_table([_HEAD, *map(_build_row, records)])
    analysis = build_analysis(state, records)
    if analysis["best_iteration"] is not None:
        worse = ", and the last is worse" if analysis["degradation_detected"] else ""
        yield f"best: iteration {analysis['best_iteration']} with {analysis['best_quality']:g} of 100{worse}"
    if analysis["trajectory"]:
        yield f"trajectory: {analysis['trajectory']} ({_WORDS[analysis['trajectory']]})"
    if analysis["unobservable"]:
        names = " and ".join(analysis["unobservable"])
        yield f"unobservable: nobody reports {names}, so that this limit cannot end a run"


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
    """Describe the trajectory, and whether the last iteration is worse than the best; empty if too little is known."""
    analysis = build_analysis(state, records)
    sentences = [f"{_WORDS[analysis['trajectory']].capitalize()}."] if analysis["trajectory"] else []
    if analysis["degradation_detected"]:
        sentences.append(f"The last iteration is worse than iteration {analysis['best_iteration']}.")
    return " ".join(sentences)
