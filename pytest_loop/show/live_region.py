"""The fixed lines that a terminal shows during a run: its progress and what it has used."""

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
MAX_SCORES = 20
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class ScoreMark(NamedTuple):
    """The score of the last evaluation of an iteration in a phase."""

    phase: Phase
    score: float
    is_void: bool = False


@dataclass
class RunProgress:
    """The state of a run and the scores so far."""

    state: RunState | None = None
    marks: dict[tuple[int, Phase], ScoreMark] = field(default_factory=dict)

    def update(self, state: RunState) -> bool:
        """Take over a new state; return whether another step has started."""
        before, self.state = self.state, state
        for attempt in state.progress.attempts:
            mark = ScoreMark(attempt.phase, attempt.score, attempt.void)
            self.marks[attempt.iteration, attempt.phase] = mark
        return before is None or before.current_step is not state.current_step


class CurrentWork(NamedTuple):
    """The current work: its name, duration and last line of output."""

    name: str
    seconds: float = 0.0
    last: str = ""


class TerminalLook(NamedTuple):
    """The abilities of a terminal."""

    width: int = 80
    is_coloured: bool = False
    has_bars: bool = True


def render_region(progress: RunProgress, work: CurrentWork, elapsed: float, look: TerminalLook) -> list[str]:
    """Render a rule, the step, the score with the usage, and the last output, cut to the terminal's width.

    Texts that may be long come last, so that the time of a step stays visible.
    """
    state = progress.state
    if state is None:
        return []
    where = f"iteration {state.iteration}/{state.max_iterations}, phase {state.phase.value}"
    line = "─" if look.has_bars else "-"
    lines = [
        (f"{line * 2} {state.task_alias} ".ljust(look.width, line), _DIM),
        (f"{where}, {format_clock(work.seconds)}: {work.name}", _BOLD),
        (", ".join([_render_score(progress, look), f"elapsed {format_clock(elapsed)}", *_list_usage(state)]), ""),
        (f"  | {shorten(work.last, look.width)}" if work.last else "", _DIM),
    ]
    return [_apply_style(cut_to_width(text, look.width - 1), style, look) for text, style in lines]


def _apply_style(text: str, style: str, look: TerminalLook) -> str:
    return f"{style}{text}{_RESET}" if style and text and look.is_coloured else text


def _render_score(progress: RunProgress, look: TerminalLook) -> str:
    evaluation = progress.state.evaluation if progress.state else None
    if progress.state is None or evaluation is None:
        return "score unknown"
    threshold = float(progress.state.criteria.phase[evaluation.phase].threshold)
    bars = draw_sparkline(list(progress.marks.values())[-MAX_SCORES:], BARS if look.has_bars else PLAIN_BARS)
    return f"score {bars} {evaluation.score:.3g} of {threshold:g}{' (void)' if evaluation.void else ''}"


def draw_sparkline(marks: Iterable[ScoreMark], bars: str = BARS) -> str:
    """Draw one bar for each score; a void one is an x, and | marks the start of phase B."""
    line, phase = "", None
    for mark in marks:
        if phase is not None and mark.phase is not phase:
            line += "|"
        line += "x" if mark.is_void else bars[min(len(bars) - 1, int(mark.score * len(bars)))]
        phase = mark.phase
    return line


def format_clock(seconds: float) -> str:
    """Format a duration as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _list_usage(state: RunState) -> Sequence[str]:
    """List what is limited or known; unknown amounts are called so."""
    words = {"usd": "cost {} USD", "tokens": "{} tokens", "seconds": "{} s of steps"}
    parts = []
    for name, (used, limit) in get_budgets(state).items():
        if limit is None and (used is None or name == "seconds"):
            continue
        amount = "unknown" if used is None else f"{used:,.0f}" if name != "usd" else f"{used:.3g}"
        parts.append(words[name].format(f"{amount} of {limit:,g}" if limit is not None else amount))
    return parts


def cut_to_width(text: str, width: int) -> str:
    """Cut a text to a number of terminal cells."""
    room = width
    for position, character in enumerate(text):
        room -= measure_width(character)
        if room < 0:
            return text[:position]
    return text


def measure_width(text: str) -> int:
    """Return the number of terminal cells of a text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)
