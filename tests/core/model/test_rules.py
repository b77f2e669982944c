"""Phases and proofs of rules."""

from __future__ import annotations

import pytest

from pytest_loop.core.model.rules import Phase, Proof, infer_phase


@pytest.mark.parametrize(
    ("rule_id", "phase"), [("a.x.y", Phase.A), ("B.x.y", Phase.B), ("b", Phase.A), ("test_it.py::test_b", Phase.A)]
)
def test_id_of_a_rule_names_its_phase(rule_id: str, phase: Phase) -> None:
    assert infer_phase(rule_id) is phase


def test_proofs_are_ordered_from_strongest_to_weakest() -> None:
    proofs = sorted(Proof, key=lambda proof: proof.rank)
    assert (proofs[0], proofs[-1]) == (Proof.EXECUTION, Proof.ASSUMPTION)
    assert [proof for proof in proofs if proof.is_executed] == proofs[:2]
    assert [proof for proof in proofs if proof.is_strong] == proofs[:3]
