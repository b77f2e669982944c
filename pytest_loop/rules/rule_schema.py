"""The keys of a rule file and their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from pytest_loop.core.judging.votes import is_valid_need
from pytest_loop.rules.checks.check import StrictModel, format_value
from pytest_loop.rules.checks.command_checks import split_command

MAX_REPEATS = 1_000
_ID = r"^[A-Za-z0-9_](?:[\w.\-/]*[\w])?$"


class Threshold(StrictModel):
    """The score that a phase needs."""

    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Phases(StrictModel):
    """The score that passes, by phase."""

    A: Threshold | None = None
    B: Threshold | None = None


class FixCommand(StrictModel):
    """A command that repairs what the rule complains about, without an agent."""

    command: Annotated[str, Field(min_length=1)]
    shell: bool = False

    @model_validator(mode="after")
    def _validate_command(self) -> FixCommand:
        if not self.shell:
            split_command(self.command)
        return self


def _validate_need(value: Any) -> Any:
    if isinstance(value, bool) or not is_valid_need(str(value)):
        raise ValueError(f"expected majority, all, any, a count or a share for `need`, found {format_value(value)}")
    return value


_NEED_SCHEMA = {"anyOf": [{"enum": ["majority", "all", "any"]}, {"type": "number", "exclusiveMinimum": 0}]}
Need = Annotated[Any, AfterValidator(_validate_need), WithJsonSchema(_NEED_SCHEMA)]


class RuleEntry(StrictModel):
    """A rule as it stands in a file; what is missing may come from the file that is extended."""

    id: Annotated[str, Field(pattern=_ID, max_length=200)]
    description: Annotated[str, Field(min_length=1)] | None = None
    severity: Literal["fail", "warn", "info"] | None = None
    weight: Annotated[int | float, Field(ge=0, allow_inf_nan=False)] | None = None
    phase: Literal["A", "B"] | None = None
    check: Any = None
    fix: str | FixCommand | None = None
    must_not: bool | None = None
    holdout: Annotated[bool, Field(description="judged, and never shown to an agent")] | None = None
    guard: Annotated[bool, Field(description="must keep passing if it passes at first; never the goal")] | None = None
    repeat: Annotated[int, Field(ge=1, le=MAX_REPEATS)] | None = None
    need: Need = None
    fixtures: list[str] | None = None


class RuleFile(StrictModel):
    """A rule file."""

    criteria: Annotated[str, Field(min_length=1)] | None = None
    version: Annotated[int, Field(ge=1)] = 1
    extends: Annotated[str, Field(min_length=1)] | None = None
    artifact: Annotated[str, Field(min_length=1)] | None = None
    phases: Phases | None = None
    rules: list[RuleEntry] = Field(default_factory=list)
