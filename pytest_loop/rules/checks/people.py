"""What a machine cannot decide: questions for an agent or a person, and sentences that nobody made concrete yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from pytest_loop.core.model import Finding
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules.checks.base import Check, Context

Words = Annotated[str, Field(min_length=1)]


class Judge(Check):
    """A judge agent answers the question."""

    judge: Words

    def run(self, context: Context) -> Iterable[Finding]:  # noqa: ARG002 - there is nobody to ask
        raise CheckError(f"no agent to ask {self.judge!r}: judge checks need an agent, and this version has none")


class Manual(Check):
    """A person answers the question; until then it is an assumption."""

    manual: Words

    def run(self, context: Context) -> Iterable[Finding]:  # noqa: ARG002 - there is nobody to ask
        raise NotJudgedError(f"an assumption: nobody has confirmed {self.manual!r}")


class Sentence(Check):
    """A plain sentence, before anybody turned it into checks."""

    sentence: Words

    def run(self, context: Context) -> Iterable[Finding]:  # noqa: ARG002 - there is nobody to ask
        raise NotJudgedError(f"a sentence that only an agent can judge: {self.sentence!r}")
