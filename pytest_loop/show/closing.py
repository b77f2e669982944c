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


def render_closing(state: RunState) -> Iterator[str]:
    """Render the verdict, and the passed rules by their kind of proof."""
    word, because = decide_closing(state)
    yield f"verdict: {word.value}, because {because}"
    for kind, (passed, total) in count_evidence(state).items():
        yield f"  {kind.value:<12} {passed} of {total} pass: {_list_rules(state, kind)}"


def _list_rules(state: RunState, kind: Proof) -> str:
    names = [shorten(rule.id, 60) for rule, proof in list_judged_rules(state) if proof is kind]
    return list_names(names, SHOWN_NAMES)


def render_breakers(state: RunState) -> str:
    """Render how often each breaker has counted, and its limit."""
    counts = [f"{name} {times} of {limit}" for name, (times, limit) in count_repetitions(state).items() if limit]
    return f"breakers: {', '.join(counts)}" if counts else "breakers: all are off"
