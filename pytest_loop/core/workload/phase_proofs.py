"""What must be stated before a phase of an experiment is left; written in snake case, and read in camel case too."""

from __future__ import annotations

from typing import Any

from pydantic import model_serializer, model_validator
from pydantic.alias_generators import to_snake

from pytest_loop.core.model.rules import Value


class _Proof(Value):
    @model_validator(mode="before")
    @classmethod
    def _in_either_case(cls, data: Any) -> Any:
        return {to_snake(str(name)): value for name, value in data.items()} if isinstance(data, dict) else data

    @model_serializer
    def _dump_all(self) -> dict[str, Any]:
        """Write defaults too: a proof states everything."""
        return dict(self)


class SetupProof(_Proof):
    """Before anything is run."""

    mode: str
    session_dir: str
    parameters_parsed: bool = True
    flags_parsed: bool = True
    routing: str = "manifest"
    manifest_validated: bool = True


class PlanningProof(_Proof):
    """What was planned; where no plan was given, the composer plans as it goes."""

    cases_selected: int
    hypotheses_ranked: int = 0
    success_criteria: str = "all cases pass"
    plan_written: bool = False
    user_approved: str = ""


class StartProof(SetupProof, PlanningProof):
    """What is stated when an experiment begins."""


class CalibrationProof(_Proof):
    """The pipeline works for one case, or does not."""

    test_fixture: str
    pipeline_result: str
    manifest_saved: str
    calibration_logged: bool = True


class BaselineProof(_Proof):
    """What there was before the first edit."""

    cases_executed: int
    baseline_metrics: str
    baseline_presented: bool = True
    user_approved: str = ""


class LoopProof(_Proof):
    """What the loop came to."""

    iterations_completed: int
    log_entries: int
    exit_condition: str
