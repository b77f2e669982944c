"""The iterations of a run side by side, and what they say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.reporting.iteration_records import IterationRecord, build_analysis
from pytest_loop.show.run import table

_HEAD = ["iteration", "phase", "quality", "change", "verified", "tokens", "cost", "seconds"]
_WORDS = {
    "improving": "most iterations raised the score",
    "declining": "most iterations lowered the score",
    "stable": "most iterations changed the score by no more than 0.02",
    "fluctuating": "the score went up and down",
}


def analysis_lines(state: RunState, told: Sequence[IterationRecord]) -> Iterator[str]:
    """A table of the iterations, where there are several, the best of them, and where the score tends to."""
    if len(told) < 2:
        return
    yield ""
    yield from table([_HEAD, *map(_row, told)])
    found = build_analysis(state, told)
    if found["best_iteration"] is not None:
        worse = ", and the last is worse" if found["degradation_detected"] else ""
        yield f"best: iteration {found['best_iteration']} with {found['best_quality']:g} of 100{worse}"
    if found["trajectory"]:
        yield f"trajectory: {found['trajectory']} ({_WORDS[found['trajectory']]})"
    if found["unobservable"]:
        yield f"unobservable: nobody reports {' and '.join(found['unobservable'])}, so that this limit cannot end a run"


def _row(one: IterationRecord) -> list[str]:
    return [
        str(one.iteration),
        one.phase.value,
        "unknown" if one.quality_score is None else f"{one.quality_score:g}",
        f"{one.quality_delta:+g}" if one.baseline_comparison else "",
        one.verification_status.value,
        "unknown" if one.tokens_used is None else f"{one.tokens_used:,}",
        "unknown" if one.token_cost_usd is None else f"{one.token_cost_usd:.4g}",
        f"{one.execution_time_ms / 1000:.1f}",
    ]


def tendency(state: RunState, told: Sequence[IterationRecord]) -> str:
    """Where the score tends to, and whether the last is not the best; empty where there is too little to say so."""
    found = build_analysis(state, told)
    said = [f"{_WORDS[found['trajectory']].capitalize()}."] if found["trajectory"] else []
    if found["degradation_detected"]:
        said.append(f"The last iteration is worse than iteration {found['best_iteration']}.")
    return " ".join(said)
