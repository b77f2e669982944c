"""What a finished run is worth: what its rules rest on, whether to ship it, and the same for loops of other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

from pytest_loop.core.machine.stop_reasons import breakers
from pytest_loop.core.model.rules import Proof, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names

# How hard it is to take back what others build on.
HARD = "1"
_BEGIN, _END = "---LOOP_STATUS---", "---END_STATUS---"


class Closing(str, Enum):
    """What to do with the result: use it, use it and keep an eye on it, or find out more."""

    SHIP = "SHIP"
    MONITOR = "MONITOR"
    RESEARCH = "RESEARCH"


def closing(state: RunState) -> tuple[Closing, str]:
    """The word for a run that is over, and why it is that one."""
    rules = list(judged_rules(state))
    weak = {rule.id: kind for rule, kind in rules if not kind.is_strong}
    unmet = [rule.id for rule, _ in rules if rule.id in _unmet(state)]
    assumed = [name for name, kind in weak.items() if kind is Proof.ASSUMPTION]
    if assumed:
        return Closing.RESEARCH, f"nobody has confirmed {_first(assumed)}"
    if not state.stop.passed:
        return Closing.RESEARCH, f"it is not done ({shorten(state.stop.reason, 80)})"
    if not rules and state.notebook is None:
        return Closing.RESEARCH, "no rule verifies it"
    if _was_done_before(state):
        return Closing.RESEARCH, "everything passed before anything was done: no rule asks for what the task wants"
    if unmet:
        return Closing.MONITOR, f"nothing blocks, and {_first(unmet)} does not pass"
    if state.manner.reversal == HARD:
        return Closing.MONITOR, "it passes, and it is hard to take back"
    if weak:
        return Closing.MONITOR, f"it passes, and {_first(list(weak))} was judged by reading only"
    return Closing.SHIP, "every rule was verified by something that ran, was measured or was seen"


def _was_done_before(state: RunState) -> bool:
    """Whether nobody has worked on it, although nobody said that passing is all that is wanted."""
    return state.iteration == 1 and not state.plan and not state.manner.says_when


def _first(names: list[str]) -> str:
    return list_names([shorten(name, 80) for name in names], 1)


def judged_rules(state: RunState) -> Iterator[tuple[RunRule, Proof]]:
    """The rules that the last evaluation judged, and what the verdict of each rests on; those only tracked are none."""
    one = state.evaluation
    if one is None:
        return
    for rule in state.criteria.get_active_rules(one.phase):
        if rule.severity is not Severity.INFO:
            yield rule, _rests_on(rule, rule.id in one.assumptions)


def _rests_on(rule: RunRule, is_assumed: bool) -> Proof:
    """An assumption that somebody has confirmed was reviewed."""
    if is_assumed:
        return Proof.ASSUMPTION
    return Proof.REVIEW if rule.proof is Proof.ASSUMPTION else rule.proof


def evidence(state: RunState) -> dict[Proof, tuple[int, int]]:
    """How many rules pass, and how many there are, by what their verdicts rest on; the strongest first."""
    unmet = _unmet(state)
    found: dict[Proof, tuple[int, int]] = {}
    for rule, kind in judged_rules(state):
        passing, total = found.get(kind, (0, 0))
        found[kind] = (passing + (rule.id not in unmet), total + 1)
    return {kind: found[kind] for kind in Proof if kind in found}


def _unmet(state: RunState) -> frozenset[str]:
    one = state.evaluation
    return one.unmet | frozenset((*one.must_not, *one.assumptions)) if one else frozenset()


def verdict(state: RunState) -> dict[str, Any]:
    """The closing word for machines."""
    word, because = closing(state)
    counts = {kind.value: {"passed": passed, "total": total} for kind, (passed, total) in evidence(state).items()}
    return {"word": word.value, "because": because, "evidence": counts}


def status_block(state: RunState, following: str) -> Iterator[str]:
    """Where a run stands, in the block that other loops are followed by."""
    unmet = _unmet(state)
    criteria = {
        rule.id: {"met": rule.id not in unmet, "verification": _KINDS[kind]} for rule, kind in judged_rules(state)
    }
    times, _ = breakers(state)["stuck"]
    yield _BEGIN
    yield f"EXIT_SIGNAL: {json.dumps(state.stop.passed)}"
    yield f"CRITERIA: {json.dumps(criteria, ensure_ascii=False)}"
    yield f"STUCK_COUNT: {max(0, times - 1)}"
    yield f"NEXT: {shorten(following, 200)}"
    yield _END


_KINDS = {kind: "execution output" if kind is Proof.EXECUTION else kind.value for kind in Proof}
