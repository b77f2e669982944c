"""Checks that an agent or a person answers, and sentences that are not concrete checks yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules.checks.check import Check, Context, Inputs, JudgeReply, Text


class Judge(Check):
    """A judge agent answers the question."""

    is_slow: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.REVIEW

    judge: Text

    def depends_on(self, context: Context) -> Inputs | None:
        return context.list_artifact_inputs()

    def run(self, context: Context) -> Iterable[Finding]:
        if context.ask is None:
            raise CheckError(f"no agent to ask {self.judge!r}: name one with --loop-judge")
        return _ask_judge(context.ask, self.judge)


def _ask_judge(ask: Callable[[str], JudgeReply], question: str) -> list[Finding]:
    answer = ask(question)
    if answer.passed:
        return []
    return [Finding(expected=f"yes to {question!r}", found=f"no: {answer.reason}", detail=answer.evidence)]


class Manual(Check):
    """A person answers the question; until then it is an assumption."""

    proof: ClassVar[Proof] = Proof.ASSUMPTION

    manual: Text

    def run(self, context: Context) -> Iterable[Finding]:
        if context.is_confirmed:
            return ()
        raise NotJudgedError(f"not confirmed yet: {self.manual!r}")


class Sentence(Check):
    """A plain sentence without a concrete check: an agent judges it, if there is one."""

    is_slow: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.REVIEW

    sentence: Text

    def depends_on(self, context: Context) -> Inputs | None:
        return context.list_artifact_inputs() if context.ask is not None else None

    def run(self, context: Context) -> Iterable[Finding]:
        if context.ask is not None:
            return _ask_judge(context.ask, f"Is this true of the document? {self.sentence}")
        raise NotJudgedError(f"a sentence that only an agent can judge: {self.sentence!r}")
