"""What is noted of an experiment between its steps: what became of a hypothesis, a loss, a standstill, the end."""

from __future__ import annotations

from typing import Any

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.experiment_state import Notebook, formed, weighed, worse
from pytest_loop.core.workload.hypotheses import OnPlateau, OnRegression, at_a_plateau, at_a_regression, flat
from pytest_loop.core.workload.phase_proofs import LoopProof
from pytest_loop.run.questions import Ask, asked_about_plateau, asked_about_regression


def note(kind: Kind, state: RunState, book: Notebook, ask: Ask | None) -> dict[str, Any]:
    """The payload of a note; a person is asked where there is one and the policy says so."""
    if kind is Kind.HYPOTHESIS_FORMED:
        return dict(formed(book, state.iteration))
    if kind is Kind.HYPOTHESIS_JUDGED:
        return dict(weighed(book))
    if kind is Kind.REGRESSION_DETECTED:
        loss = at_a_regression(book.seen, book.policy, is_attended=ask is not None) or OnRegression.STOP
        return dict(worse(book, asked_about_regression(ask) if ask and loss is OnRegression.ASK else loss))
    rest = at_a_plateau(book.seen, book.policy, book.settled, is_attended=ask is not None) or OnPlateau.STOP
    action = asked_about_plateau(ask) if ask and rest is OnPlateau.ASK else rest
    return {"flat": flat(book.seen, book.settled), "action": action.value}


def last_words(state: RunState, book: Notebook, reason: str) -> dict[str, Any]:
    """What is stated when the loop is left: the proof, and how the cases did that no composer has seen."""
    proof = LoopProof(iterations_completed=len(book.hypotheses), log_entries=state.evaluations, exit_condition=reason)
    found = book.held_out(book.measurements[-1]) if book.measurements else None
    held_out = {"held_out": {"passing": found[0], "total": found[1]}} if found else {}
    return {"proof": proof.model_dump(), **held_out}
