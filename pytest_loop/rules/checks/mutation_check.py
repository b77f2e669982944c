"""A check that mutates code: would the tests notice a bug?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, TrialsDeferredError
from pytest_loop.repair.mutation.mutation_request import (
    DEFAULT_SECONDS,
    MutationError,
    MutationRequest,
    MutationResult,
    Survivor,
    measure_mutants,
)
from pytest_loop.rules.checks.check import Check, Context, Seconds, StrictModel, Text, TextList, format_value
from pytest_loop.rules.checks.data_checks import OPERATORS

_SHOWN_SURVIVORS = 10
_COMPARISON = re.compile(r"(>=|>|==)\s*(\d*\.?\d+)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min)")
_SECONDS_PER_UNIT = {"s": 1, "min": 60}


def _parse_duration(value: Any) -> Any:
    """Return the seconds of `60 s` or `2 min`; return other values unchanged, for validation to refuse."""
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS_PER_UNIT[match[2]] if match else value


def parse_comparison(text: str) -> tuple[str, float]:
    """Return the operator and the number of a comparison such as `>= 0.8`; raise `ValueError` for other texts."""
    match = _COMPARISON.fullmatch(text.strip())
    if match is None or not 0 <= float(match[2]) <= 1:
        raise ValueError(f"expected a comparison with a number from 0 to 1, as '>= 0.8', found {format_value(text)}")
    return match[1], float(match[2])


class Mutated(StrictModel):
    """Which code is mutated, which tests run, and what share of the mutants they must notice."""

    paths: TextList = Field(description="files and folders to mutate")
    tests: TextList | None = Field(default=None, description="tests that run (default: all of the project)")
    score: Text = ">= 0.8"
    limit: Annotated[
        Seconds, BeforeValidator(_parse_duration, json_schema_input_type=Seconds | Text), Field(description="`60 s`")
    ] = DEFAULT_SECONDS

    @field_validator("score")
    @classmethod
    def _validate_score(cls, score: str) -> str:
        parse_comparison(score)
        return score


class Mutation(Check):
    """The tests notice enough small changes of the code."""

    is_slow: ClassVar[bool] = True
    has_trials: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.MEASUREMENT

    mutation: Mutated

    def run(self, context: Context) -> Iterable[Finding]:
        root = context.root.resolve()
        paths = tuple(context.resolve_inside(Path(path)).relative_to(root).as_posix() for path in self.mutation.paths)
        request = MutationRequest(
            folder=root,
            paths=paths,
            pytest_arguments=tuple(str(context.resolve_inside(Path(path))) for path in self.mutation.tests or ()),
            seconds=self.mutation.limit,
        )
        if context.defers_trials:
            raise TrialsDeferredError(request.model_dump_json())
        result_json = context.trials.get(request.model_dump_json())
        try:
            result = MutationResult.model_validate_json(result_json) if result_json else measure_mutants(request)
        except MutationError as error:
            raise CheckError(str(error)) from None
        operator, number = parse_comparison(self.mutation.score)
        if OPERATORS[operator](result.score, number):
            return
        yield Finding(expected=f"a mutation score {operator} {number:g}", found=result.summarise())
        yield from (_describe_survivor(survivor) for survivor in result.survivors[:_SHOWN_SURVIVORS])


def _describe_survivor(survivor: Survivor) -> Finding:
    return Finding(
        expected="a test that fails with this change",
        found=survivor.describe(),
        where=f"{survivor.path}:{survivor.line}",
    )
