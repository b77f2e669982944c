"""Counts and lists in plain English."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# A callback that prints one line for the user.
PrintLine = Callable[[str], None]

_STEPS = {
    "PLAN": "planning",
    "PRODUCE": "writing",
    "PREPARE": "preparing checks",
    "EVALUATE": "judging",
    "CRITIQUE": "the critique",
    "REFINE": "editing",
    "JUDGE": "judging",
    "COMPOSE": "proposing edits",
}


def name_step(step: str) -> str:
    """Return the activity of a step in plain words."""
    return _STEPS.get(step, step)


def format_count(count: int, noun: str) -> str:
    """Return the count with its noun in the singular or plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_bytes(count: int) -> str:
    """Return a number of bytes in bytes, kB or MB."""
    if count < 1_000:
        return format_count(count, "byte")
    return f"{count / 1e3:,.0f} kB" if count < 1_000_000 else f"{count / 1e6:,.1f} MB"


def list_names(names: Sequence[str], limit: int) -> str:
    """Join at most `limit` names, followed by "and N more" if there are more."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def limit_lines(lines: Sequence[str], limit: int, rest: str = "- and {:,} more") -> list[str]:
    """Return at most `limit` lines, followed by `rest` with the number of omitted lines."""
    return [*lines[:limit], *([rest.format(len(lines) - limit)] if len(lines) > limit else [])]
