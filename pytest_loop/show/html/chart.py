"""The score over the evaluations of a run: where everything stands in the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.text.wording import list_names
from pytest_loop.show.html.verdict import exact
from pytest_loop.show.score_section import format_decimal
from pytest_loop.show.summary import Round

HEIGHT = 270
NARROWEST = 340
WIDEST = 900
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 48, 46, 36
_CLOSEST, _WIDEST_STEP = 14, 80
_LABEL_ROOM = 26


@dataclass(frozen=True)
class Point:
    """One evaluation in the drawing; `label` stands below it, `said` is what it says in words."""

    x: float
    y: float
    label: str
    said: str
    is_passed: bool
    is_void: bool
    is_best: bool


@dataclass(frozen=True)
class Line:
    """A level line: the threshold of a phase, as far as that phase goes."""

    x: float
    end: float
    y: float
    label: str


@dataclass(frozen=True)
class Chart:
    """The whole drawing, in pixels; `switch` is where phase B begins."""

    width: float
    height: int
    points: tuple[Point, ...]
    path: str
    thresholds: tuple[Line, ...]
    levels: tuple[Line, ...]
    switch: float | None
    said: str


def label(told: Sequence[Round], at: int) -> str:
    """The number of an iteration, with its phase where it was judged in both."""
    number = told[at].iteration
    is_alone = sum(one.iteration == number for one in told[max(0, at - 2) : at + 3]) == 1
    return str(number) if is_alone else f"{number}{told[at].found.phase.value}"


def chart(state: RunState, told: Sequence[Round], events: Sequence[Event]) -> Chart | None:
    """The drawing; None where nothing was judged."""
    if not told:
        return None
    room = WIDEST - _LEFT - _RIGHT
    step = min(_WIDEST_STEP, max(_CLOSEST, room / len(told)))
    width = max(NARROWEST, _LEFT + _RIGHT + step * len(told))
    places = [_LEFT + step * (at + 0.5) for at in range(len(told))]
    every = -(-_LABEL_ROOM // step) if step < _LABEL_ROOM else 1
    best = _best(state, told)
    points = tuple(
        _point(places[at], told, at, is_best=at == best, is_labelled=at % every == 0) for at in range(len(told))
    )
    switch = _switch(told, events, places, step)
    return Chart(
        width=round(width, 1),
        height=HEIGHT,
        points=points,
        path=" ".join(f"{point.x},{point.y}" for point in points if not point.is_void),
        thresholds=tuple(_thresholds(state, switch, width - _RIGHT)),
        levels=tuple(Line(_LEFT, width - _RIGHT, _height(level), f"{level:g}") for level in (0, 0.25, 0.5, 0.75, 1)),
        switch=switch,
        said=_said(told, best),
    )


def _height(score: float) -> float:
    return round(_TOP + (1 - score) * (HEIGHT - _TOP - _BOTTOM), 1)


def _point(x: float, told: Sequence[Round], at: int, *, is_best: bool, is_labelled: bool) -> Point:
    found = told[at].found
    word = "void" if found.void else "passes" if found.passed else "fails"
    said = (
        f"iteration {told[at].iteration}, phase {found.phase.value}: score {format_decimal(exact(found.score))}, {word}"
    )
    return Point(
        x=round(x, 1),
        y=_height(found.score),
        label=label(told, at) if is_labelled else "",
        said=f"{said}, {found.passing} of {found.total} rules pass" + (", the best" if is_best else ""),
        is_passed=found.passed,
        is_void=found.void,
        is_best=is_best,
    )


def _best(state: RunState, told: Sequence[Round]) -> int | None:
    """Where the best evaluation stands, as the run itself counts it."""
    if state.progress.best is None:
        return None
    best = (state.progress.best.iteration, state.progress.best.score)
    return next((at for at in reversed(range(len(told))) if (told[at].iteration, told[at].found.score) == best), None)


def _switch(told: Sequence[Round], events: Sequence[Event], places: Sequence[float], step: float) -> float | None:
    """Between the last evaluation of A and the first of B."""
    judged = sum(one.found.phase is Phase.A for one in told)
    if judged == len(told) and all(event.event != Kind.PHASE_SWITCHED.value for event in events):
        return None
    return round((places[judged] if judged < len(places) else places[-1] + step) - step / 2, 1)


def _thresholds(state: RunState, switch: float | None, end: float) -> Iterator[Line]:
    first, second = (float(state.criteria.phase[phase].threshold) for phase in (Phase.A, Phase.B))
    last_of_first = end if switch is None else switch
    if last_of_first > _LEFT:
        yield Line(_LEFT, last_of_first, _height(first), f"A {first:g}")
    if switch is not None:
        yield Line(switch, end, _height(second), f"B {second:g}")


def _said(told: Sequence[Round], best: int | None) -> str:
    scores = list_names([f"{format_decimal(exact(one.found.score))} in iteration {one.iteration}" for one in told], 20)
    highest = f" The best is iteration {told[best].iteration}." if best is not None else ""
    return f"Score over {len(told)} evaluations: {scores}.{highest}"
