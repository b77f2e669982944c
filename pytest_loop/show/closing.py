"""The end of a run in a few lines: what to do with the result, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.model.rules import Proof
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.reporting.closing_verdict import count_evidence, decide_closing, list_judged_rules
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names

SHOWN_NAMES = 3


def closing_lines(state: RunState) -> Iterator[str]:
    """The verdict, and the rules by what their verdicts rest on; the weakest come last, and are named."""
    word, because = decide_closing(state)
    yield f"verdict: {word.value}, because {because}"
    for kind, (passed, total) in count_evidence(state).items():
        yield f"  {kind.value:<12} {passed} of {total} pass: {_names(state, kind)}"


def _names(state: RunState, kind: Proof) -> str:
    names = [shorten(rule.id, 60) for rule, found in list_judged_rules(state) if found is kind]
    return list_names(names, SHOWN_NAMES)


def breaker_line(state: RunState) -> str:
    """How near each breaker is to the end of its patience."""
    counts = [f"{name} {times} of {limit}" for name, (times, limit) in count_repetitions(state).items() if limit]
    return f"breakers: {', '.join(counts)}" if counts else "breakers: all are off"
