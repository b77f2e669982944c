"""What the sessions of a run have found so far: the next one is ordered by it, and need not repeat all of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_loop.core.model.rules import Evidence, Outcome
from pytest_loop.core.model.session_order import SessionOrder

_WORTH = 0.05


@dataclass
class Memory:
    """The latest evidence of each item."""

    evidence: dict[str, Evidence] = field(default_factory=dict)

    def reminded(self, order: SessionOrder) -> SessionOrder:
        """The order with what is known: how long items take, what failed, and verdicts that may be kept."""
        known = self.evidence.items()
        return order.model_copy(
            update={
                "durations": {name: one.seconds for name, one in known if one.seconds >= _WORTH},
                "failed_before": tuple(name for name, one in known if is_bad(one)),
                "cached_evidence": {
                    name: one.model_dump(mode="json", exclude_defaults=True) for name, one in known if one.inputs
                }
                if order.can_reuse
                else {},
            }
        )

    def learn(self, found: dict[str, Evidence]) -> None:
        """What a session has found; what it did not find itself is known already."""
        self.evidence |= {name: one for name, one in found.items() if not one.reused}

    def of_others(self, nodeids: Iterable[str], found: dict[str, Evidence]) -> dict[str, Evidence]:
        """What was known of the items that a session did not come to."""
        return {name: self.evidence[name] for name in nodeids if name not in found and name in self.evidence}


def is_bad(one: Evidence) -> bool:
    """Whether it speaks against what is judged."""
    return one.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.MISSING)
