"""Proofs that an experiment must state before it leaves a phase; read in snake case and camel case."""

from __future__ import annotations

from typing import Any

from pydantic import model_serializer, model_validator
from pydantic.alias_generators import to_snake

from pytest_loop.core.model.rules import Value


class _Proof(Value):
    @model_validator(mode="before")
    @classmethod
    def _accept_camel_case(cls, data: Any) -> Any:
        return {to_snake(str(name)): value for name, value in data.items()} if isinstance(data, dict) else data

    @model_serializer
    def _dump_all(self) -> dict[str, Any]:
        """Write defaults too: a proof states everything."""
        return dict(self)


class SetupProof(_Proof):
    """Proof of the setup."""

    mode: str
    session_dir: str
    parameters_parsed: bool = True
    flags_parsed: bool = True
    routing: str = "manifest"
    manifest_validated: bool = True


class PlanningProof(_Proof):
    """Proof of the planning; without a plan file the composer plans in each iteration."""

    cases_selected: int
    failure_context: str = ""
    hypotheses_ranked: int = 0
    experiments_designed: int = 0
    success_criteria: str = "all cases pass"
    plan_written: bool = False
    user_approved: str = ""


class StartProof(SetupProof, PlanningProof):
    """Proof of setup and planning at the start of an experiment."""


class CalibrationProof(_Proof):
    """Proof that the pipeline was tried with one case."""

    test_fixture: str
    pipeline_result: str
    manifest_saved: str
    calibration_logged: bool = True


class BaselineProof(_Proof):
    """Proof of the measurement before the first edit."""

    cases_executed: int
    baseline_metrics: str
    baseline_presented: bool = True
    user_approved: str = ""


class LoopProof(_Proof):
    """Proof of the loop's end."""

    iterations_completed: int
    log_entries: int
    exit_condition: str
