"""The evidence of a run's earlier sessions, used to order the next one and to reuse unchanged verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_loop.core.model.rules import Evidence, Outcome
from pytest_loop.core.model.session_order import SessionOrder

_MIN_SECONDS = 0.05


@dataclass
class SessionHistory:
    """The latest evidence of each item."""

    evidence: dict[str, Evidence] = field(default_factory=dict)

    def extend_order(self, order: SessionOrder) -> SessionOrder:
        """Return the order with durations, failures, and verdicts that may be reused."""
        items = self.evidence.items()
        reusable = {
            nodeid: evidence.model_dump(mode="json", exclude_defaults=True)
            for nodeid, evidence in items
            if order.can_reuse and evidence.inputs and evidence.outcome is not Outcome.UNCHECKED
        }
        return order.model_copy(
            update={
                "durations": {nodeid: piece.seconds for nodeid, piece in items if piece.seconds >= _MIN_SECONDS},
                "failed_before": tuple(nodeid for nodeid, evidence in items if is_failure(evidence)),
                "cached_evidence": reusable,
            }
        )

    def add(self, evidence: dict[str, Evidence]) -> None:
        """Add the evidence of a session, except reused evidence, which is in the history already."""
        self.evidence |= {nodeid: piece for nodeid, piece in evidence.items() if not piece.reused}

    def find_earlier(self, nodeids: Iterable[str], evidence: dict[str, Evidence]) -> dict[str, Evidence]:
        """Return earlier evidence of the items `nodeids` that a session did not reach."""
        return {
            nodeid: self.evidence[nodeid] for nodeid in nodeids if nodeid not in evidence and nodeid in self.evidence
        }


def is_failure(evidence: Evidence) -> bool:
    """Return whether evidence counts as a failure of its rule; missing and unchecked evidence does."""
    return evidence.outcome in (Outcome.UNCHECKED, Outcome.FAILED, Outcome.ERROR, Outcome.MISSING)
