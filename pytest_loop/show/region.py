"""The few lines that stand still at a terminal while a run is at work: where it stands, and what it has used."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten

HEIGHT = 4
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "12345678"
MOST_SCORES = 20
_BOLD, _DIM, _END = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Mark(NamedTuple):
    """The last evaluation of an iteration in a phase."""

    phase: Phase
    score: float
    is_void: bool = False


@dataclass
class Standing:
    """Where a run stands, as far as its events have told."""

    state: RunState | None = None
    marks: dict[tuple[int, Phase], Mark] = field(default_factory=dict)

    def hear(self, state: RunState) -> bool:
        """Something has happened; whether another step has begun with it."""
        before, self.state = self.state, state
        for one in state.progress.attempts:
            self.marks[one.iteration, one.phase] = Mark(one.phase, one.score, one.void)
        return before is None or before.current_step is not state.current_step


class Work(NamedTuple):
    """Who works at what, for how many seconds, and what was heard last."""

    name: str
    seconds: float = 0.0
    last: str = ""


class Look(NamedTuple):
    """What a terminal can show."""

    width: int = 80
    is_coloured: bool = False
    has_bars: bool = True


def region(standing: Standing, work: Work, elapsed: float, look: Look) -> list[str]:
    """The lines, none of them wider than the terminal: a rule, the step, the score with what was used, the last words.

    What may be long stands last: the time of a step is to be seen whoever works.
    """
    state = standing.state
    if state is None:
        return []
    where = f"iteration {state.iteration}/{state.max_iterations}, phase {state.phase.value}"
    line = "─" if look.has_bars else "-"
    lines = [
        (f"{line * 2} {state.task_alias} ".ljust(look.width, line), _DIM),
        (f"{where}, {clock(work.seconds)}: {work.name}", _BOLD),
        (", ".join([_score(standing, look), f"elapsed {clock(elapsed)}", *_used(state)]), ""),
        (f"  | {shorten(work.last, look.width)}" if work.last else "", _DIM),
    ]
    return [_styled(cut(text, look.width - 1), style, look) for text, style in lines]


def _styled(text: str, style: str, look: Look) -> str:
    return f"{style}{text}{_END}" if style and text and look.is_coloured else text


def _score(standing: Standing, look: Look) -> str:
    one = standing.state.evaluation if standing.state else None
    if standing.state is None or one is None:
        return "score unknown"
    threshold = float(standing.state.criteria.phase[one.phase].threshold)
    bars = sparkline(list(standing.marks.values())[-MOST_SCORES:], BARS if look.has_bars else PLAIN_BARS)
    return f"score {bars} {one.score:.3g} of {threshold:g}{' (void)' if one.void else ''}"


def sparkline(marks: Iterable[Mark], bars: str = BARS) -> str:
    """One character for each score, higher where that is; a void one is an x, and | stands where phase B begins."""
    drawn, before = "", None
    for one in marks:
        if before is not None and one.phase is not before:
            drawn += "|"
        drawn += "x" if one.is_void else bars[min(len(bars) - 1, int(one.score * len(bars)))]
        before = one.phase
    return drawn


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _used(state: RunState) -> Sequence[str]:
    """What is limited or known; unknown is said to be so."""
    words = {"usd": "cost {} USD", "tokens": "{} tokens", "seconds": "{} s of steps"}
    told = []
    for name, (used, limit) in get_budgets(state).items():
        if limit is None and (used is None or name == "seconds"):
            continue
        amount = "unknown" if used is None else f"{used:,.0f}" if name != "usd" else f"{used:.3g}"
        told.append(words[name].format(f"{amount} of {limit:,g}" if limit is not None else amount))
    return told


def cut(text: str, width: int) -> str:
    """As much of a text as so many cells have room for."""
    room = width
    for at, character in enumerate(text):
        room -= cells(character)
        if room < 0:
            return text[:at]
    return text


def cells(text: str) -> int:
    """How wide a text is at a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )
