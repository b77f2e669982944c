"""Compute the positions of all parts of the score chart of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import list_names
from pytest_loop.show.job_summary import EvaluationEntry

HEIGHT = 270
MIN_WIDTH = 340
MAX_WIDTH = 900
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 48, 46, 36
_MIN_STEP, _MAX_STEP = 14, 80
_LABEL_ROOM = 26


@dataclass(frozen=True)
class Point:
    """One evaluation in the drawing, with the label below it and a description."""

    x: float
    y: float
    label: str
    description: str
    is_passed: bool
    is_void: bool
    is_best: bool


@dataclass(frozen=True)
class Line:
    """A horizontal line from `x` to `end`: a grid line, or the threshold of a phase."""

    x: float
    end: float
    y: float
    label: str


@dataclass(frozen=True)
class Chart:
    """The whole drawing in pixels; `switch` is the start of phase B."""

    width: float
    height: int
    points: tuple[Point, ...]
    path: str
    thresholds: tuple[Line, ...]
    levels: tuple[Line, ...]
    switch: float | None
    description: str


def format_label(entries: Sequence[EvaluationEntry], index: int) -> str:
    """Return the number of an iteration, with the phase if the iteration has an evaluation in both phases."""
    number = entries[index].iteration
    is_alone = sum(entry.iteration == number for entry in entries[max(0, index - 2) : index + 3]) == 1
    return str(number) if is_alone else f"{number}{entries[index].evaluation.phase.value}"


def build_chart(state: RunState, entries: Sequence[EvaluationEntry], events: Sequence[Event]) -> Chart | None:
    """Build the chart, or return None if there is no evaluation."""
    if not entries:
        return None
    room = MAX_WIDTH - _LEFT - _RIGHT
    step = min(_MAX_STEP, max(_MIN_STEP, room / len(entries)))
    width = max(MIN_WIDTH, _LEFT + _RIGHT + step * len(entries))
    positions = [_LEFT + step * (index + 0.5) for index in range(len(entries))]
    interval = -(-_LABEL_ROOM // step) if step < _LABEL_ROOM else 1
    best = _find_best(state, entries)
    points = tuple(
        _build_point(positions[index], entries, index, is_best=index == best, is_labelled=index % interval == 0)
        for index in range(len(entries))
    )
    switch = _find_switch(state, entries, events, positions, step)
    return Chart(
        width=round(width, 1),
        height=HEIGHT,
        points=points,
        path=" ".join(f"{point.x},{point.y}" for point in points if not point.is_void),
        thresholds=tuple(_list_thresholds(state, switch, width - _RIGHT)),
        levels=tuple(Line(_LEFT, width - _RIGHT, _compute_y(level), f"{level:g}") for level in (0, 0.25, 0.5, 0.75, 1)),
        switch=switch,
        description=_describe(entries, best),
    )


def _compute_y(score: float) -> float:
    return round(_TOP + (1 - score) * (HEIGHT - _TOP - _BOTTOM), 1)


def _build_point(
    x: float, entries: Sequence[EvaluationEntry], index: int, *, is_best: bool, is_labelled: bool
) -> Point:
    iteration, evaluation = entries[index].iteration, entries[index].evaluation
    verdict = "void" if evaluation.void else "passes" if evaluation.passed else "fails"
    score = f"score {format_score(evaluation.score)}, {verdict}"
    rules = f"{evaluation.passing} of {evaluation.total} rules pass" + (", the best" if is_best else "")
    return Point(
        x=round(x, 1),
        y=_compute_y(evaluation.score),
        label=format_label(entries, index) if is_labelled else "",
        description=f"iteration {iteration}, phase {evaluation.phase.value}: {score}, {rules}",
        is_passed=evaluation.passed,
        is_void=evaluation.void,
        is_best=is_best,
    )


def _find_best(state: RunState, entries: Sequence[EvaluationEntry]) -> int | None:
    """Return the index of the best evaluation as recorded in the state."""
    if state.progress.best is None:
        return None
    best = (state.progress.best.iteration, state.progress.best.score)
    keys = [(entry.iteration, entry.evaluation.score) for entry in entries]
    return len(keys) - 1 - keys[::-1].index(best) if best in keys else None


def _find_switch(
    state: RunState,
    entries: Sequence[EvaluationEntry],
    events: Sequence[Event],
    positions: Sequence[float],
    step: float,
) -> float | None:
    """Return the x position between the last evaluation of phase A and the first of phase B; None without B."""
    count = sum(entry.evaluation.phase is Phase.A for entry in entries)
    if not state.criteria.has_phase_b:
        return None
    if count == len(entries) and all(event.event != Kind.PHASE_SWITCHED.value for event in events):
        return None
    return round((positions[count] if count < len(positions) else positions[-1] + step) - step / 2, 1)


def _list_thresholds(state: RunState, switch: float | None, end: float) -> Iterator[Line]:
    first, second = (float(state.criteria.phase[phase].threshold) for phase in (Phase.A, Phase.B))
    if not state.criteria.has_phase_b:  # the same rules decide in both phases, so only the last threshold matters
        yield Line(_LEFT, end, _compute_y(second), f"{second:g}")
        return
    end_of_a = end if switch is None else switch
    if end_of_a > _LEFT:
        yield Line(_LEFT, end_of_a, _compute_y(first), f"A {first:g}")
    if switch is not None:
        yield Line(switch, end, _compute_y(second), f"B {second:g}")


def _describe(entries: Sequence[EvaluationEntry], best: int | None) -> str:
    scores = list_names(
        [f"{format_score(entry.evaluation.score)} in iteration {entry.iteration}" for entry in entries], 20
    )
    highest = f" The best is iteration {entries[best].iteration}." if best is not None else ""
    return f"Score over {len(entries)} evaluations: {scores}.{highest}"
