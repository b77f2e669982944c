"""The closing verdict of a run: whether to ship the result and why, its evidence, and a block for other loops."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from pytest_loop.core.judging.tampering import UNVERIFIED
from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.model.rules import Proof, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names

# The `reversal` of a task that takes hours or more to undo.
HARD_TO_UNDO = "1"
_BEGIN, _END = "---LOOP_STATUS---", "---END_STATUS---"
_VERIFICATIONS = {proof: "execution output" if proof is Proof.EXECUTION else proof.value for proof in Proof}


class Closing(str, Enum):
    """The recommendation about a result: use it, use it and watch it, or find out more."""

    SHIP = "SHIP"
    MONITOR = "MONITOR"
    RESEARCH = "RESEARCH"


def decide_closing(state: RunState) -> tuple[Closing, str]:
    """Return the recommendation about a run that is over, and the reason for it."""
    rules = list(list_judged_rules(state))
    weak = {rule.id: proof for rule, proof in rules if not proof.is_strong}
    unmet = [rule.id for rule, _ in rules if rule.id in _list_unmet(state)]
    if assumed := [name for name, proof in weak.items() if proof is Proof.ASSUMPTION]:
        return Closing.RESEARCH, f"not confirmed yet: {_name_first(assumed)}"
    if not state.stop.passed:
        return Closing.RESEARCH, f"it is not done ({shorten(state.stop.reason, 80)})"
    if not rules:
        return Closing.RESEARCH, "no rule verifies it"
    if unmet:
        return Closing.MONITOR, f"nothing blocks, and {_name_first(unmet)} does not pass"
    if doubt := _find_doubt(state, list(weak)):
        return Closing.MONITOR, doubt
    if state.iteration == 1 and not state.plan:  # an experiment has no plan in any iteration
        return Closing.SHIP, "there was nothing to do: every rule passed before anything was changed"
    return Closing.SHIP, "every rule was verified"


def _find_doubt(state: RunState, weak: list[str]) -> str:
    """Return why a result that passes should be watched, or an empty text; `weak` rules were judged by reading only."""
    if state.setup.draft.reversal == HARD_TO_UNDO:
        return "it passes, and it is hard to take back"
    if unjudged := state.setup.draft.unjudged:
        return f"it passes, and nothing judged {_name_first(unjudged)}"
    if unmeasured := state.setup.draft.unmeasured:
        return f"it passes, and no test that failed names {_name_first(unmeasured)}"
    if state.setup.written_tests and state.setup.draft.is_unread:
        return f"it passes, and no person has read {_name_first(state.setup.written_tests)}, which an agent wrote"
    if state.setup.is_unsigned:
        return "it passes, and this machine has not signed how the run began"
    if state.setup.edits_first:
        return "everything passes as it did before: review what was changed"
    unsealed = [path.lstrip("/") for answer in state.signals.answers for path in answer.unsealed]
    if unsealed:
        return f"it passes, and an answer allowed edits of {_name_first(unsealed)}, which judges"
    if state.progress.has_searched_edits:
        return "review the edits, which were found by search"
    if unverified := _describe_unverified(state):
        return f"it passes, and {_name_first(unverified)}"
    verb = "was" if len(weak) == 1 else "were"
    return f"it passes, and {_name_first(weak)} {verb} judged by reading only" if weak else ""


def _describe_unverified(state: RunState) -> list[str]:
    """Describe the files that may have helped a deciding evaluation to pass."""
    findings = state.evaluation.findings if state.evaluation else ()
    return [f"{finding.path} is not verified: {finding.detail}" for finding in findings if finding.kind == UNVERIFIED]


def _name_first(names: Sequence[str]) -> str:
    return list_names([shorten(name, 80) for name in names], 1)


def list_judged_rules(state: RunState) -> Iterator[tuple[RunRule, Proof]]:
    """Yield the rules of the last evaluation with their proofs, without guards and those that are only tracked."""
    evaluation = state.evaluation
    if evaluation is None:
        return
    for rule in state.criteria.get_active_rules(evaluation.phase):
        if rule.severity is not Severity.INFO and not rule.guard:
            yield rule, _find_proof(rule, rule.id in evaluation.assumptions)


def _find_proof(rule: RunRule, is_assumed: bool) -> Proof:
    """Return the proof of a rule; an assumption that a person confirmed counts as reviewed."""
    if is_assumed:
        return Proof.ASSUMPTION
    return Proof.REVIEW if rule.proof is Proof.ASSUMPTION else rule.proof


def count_evidence(state: RunState) -> dict[Proof, tuple[int, int]]:
    """Return the numbers of passing and of all rules by proof, the strongest first."""
    unmet = _list_unmet(state)
    counts: dict[Proof, tuple[int, int]] = {}
    for rule, proof in list_judged_rules(state):
        passing, total = counts.get(proof, (0, 0))
        counts[proof] = (passing + (rule.id not in unmet), total + 1)
    return {proof: counts[proof] for proof in Proof if proof in counts}


def _list_unmet(state: RunState) -> frozenset[str]:
    evaluation = state.evaluation
    if evaluation is None:
        return frozenset()
    errors = (error.id for error in evaluation.errors)
    return evaluation.unmet | frozenset((*evaluation.must_not, *evaluation.assumptions, *errors))


def build_verdict(state: RunState) -> dict[str, Any]:
    """Return the closing verdict as JSON data."""
    word, because = decide_closing(state)
    evidence = {
        proof.value: {"passed": passed, "total": total} for proof, (passed, total) in count_evidence(state).items()
    }
    return {"word": word.value, "because": because, "evidence": evidence}


def render_status_block(state: RunState, next_step: str) -> Iterator[str]:
    """Yield the lines of the status block that other loops read."""
    unmet = _list_unmet(state)
    criteria = {
        rule.id: {"met": rule.id not in unmet, "verification": _VERIFICATIONS[proof]}
        for rule, proof in list_judged_rules(state)
    }
    times, _ = count_repetitions(state)["stuck"]
    yield _BEGIN
    yield f"EXIT_SIGNAL: {json.dumps(state.stop.passed)}"
    yield f"CRITERIA: {json.dumps(criteria, ensure_ascii=False)}"
    yield f"STUCK_COUNT: {max(0, times - 1)}"
    yield f"NEXT: {shorten(next_step, 200)}"
    yield _END
