"""What a person is asked in an experiment: which edit to make, and whether a loss or a standstill is worth going on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pytest_loop.core.workload.analysis import OPTIONS
from pytest_loop.core.workload.hypotheses import Decision, OnPlateau, OnRegression

Ask = Callable[[str], str]
Answer = TypeVar("Answer")
_REGRESSIONS = {"a": OnRegression.ACCEPT, "d": OnRegression.DIFFERENT, "s": OnRegression.STOP}
_PLATEAUS = {"c": OnPlateau.CONTINUE, "s": OnPlateau.STOP}


def asked_decision(ask: Ask) -> Decision:
    """Which option is taken; other words than a number go to the composer, and the iteration is skipped."""
    said = ask("which edit? [1 is recommended, 2, 3, s skips, other words go to the composer] ").strip()
    if said in ("", *(str(number) for number in range(1, OPTIONS + 1))):
        return Decision(chosen=int(said or 1), reason="chosen by a person")
    if said.lower() in ("s", "skip"):
        return Decision(chosen=None, reason="skipped by a person")
    return Decision(chosen=None, reason="sent back by a person", feedback=said)


def asked_about_regression(ask: Ask) -> OnRegression:
    """Whether what was gained is worth the loss."""
    return _one(ask, "cases became worse: accept it, try something different, or stop? [a/d/s] ", _REGRESSIONS)


def asked_about_plateau(ask: Ask) -> OnPlateau:
    """Whether to try on although nothing improves."""
    return _one(ask, "nothing has improved for a while: continue or stop? [c/s] ", _PLATEAUS)


def _one(ask: Ask, question: str, answers: Mapping[str, Answer]) -> Answer:
    """Asked until it is answered; who has left wants to stop."""
    while True:
        said = ask(question).strip().lower()
        if said[:1] in answers:
            return answers[said[:1]]
        if not said:
            return answers["s"]
