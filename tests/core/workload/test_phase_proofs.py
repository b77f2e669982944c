from __future__ import annotations

import pytest
from pydantic import ValidationError

from pytest_loop.core.workload.phase_proofs import BaselineProof, CalibrationProof


def test_proofs_are_written_in_snake_case_and_read_in_both() -> None:
    """E10."""
    snake = {"test_fixture": "a", "pipeline_result": "passed", "manifest_saved": "m", "calibration_logged": True}
    camel = {"testFixture": "a", "pipelineResult": "passed", "manifestSaved": "m", "calibrationLogged": True}
    proofs = [CalibrationProof.model_validate(data) for data in (snake, camel)]
    assert proofs[0] == proofs[1]
    assert proofs[0].model_dump() == snake


def test_incomplete_proof_is_rejected() -> None:
    with pytest.raises(ValidationError):
        BaselineProof.model_validate({"cases_executed": 3})
    with pytest.raises(ValidationError):
        BaselineProof.model_validate(3)
