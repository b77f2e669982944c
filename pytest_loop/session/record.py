"""From the reports of a session to its evaluations: joined by node id, counted from the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_loop.core.judging.score import MISSING, evaluate_criteria
from pytest_loop.core.model.rules import Evaluation, Evidence, Outcome, Phase, Plan

_PASSED = Evidence(outcome=Outcome.PASSED)


class Recorder:
    """Hears every report where they come together; only what reports said about rules is kept."""

    def __init__(self, told: Callable[..., None] | None = None) -> None:
        self._evidence: dict[str, dict[str, Any]] = {}
        self._told = told

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        noted = getattr(report, "loop", None)
        if noted is not None:
            self._keep(report.nodeid, noted["evidence"])
        elif report.failed:  # a worker that died has nobody left to say what it was doing
            self._keep(report.nodeid, {"outcome": Outcome.ERROR.value, "text": str(report.longrepr)})

    def _keep(self, nodeid: str, evidence: dict[str, Any]) -> None:
        self._evidence[nodeid] = evidence
        if self._told is not None:
            self._told(nodeid, evidence)

    def seconds(self) -> dict[str, float]:
        """How long each item took."""
        return {nodeid: float(one.get("seconds", 0.0)) for nodeid, one in self._evidence.items()}

    @property
    def heard(self) -> bool:
        return bool(self._evidence)

    def evaluations(self, plan: Plan, phase: Phase) -> list[Evaluation]:
        """One for every set of criteria that has a selected rule."""
        by_rule: dict[str, list[Evidence]] = {}
        for nodeid, keys in plan.items.items():
            evidence = _evidence(self._evidence.get(nodeid))
            for key in keys:
                by_rule.setdefault(key, []).append(evidence)
        done = []
        for criteria in plan.criteria:
            prefix = f"{criteria.source}::"
            reported = {rule.id: found for rule in criteria.rules if (found := by_rule.get(prefix + rule.id))}
            judged = evaluate_criteria(criteria, phase, reported)
            if judged.results:
                done.append(judged)
        return done


def _evidence(known: dict[str, Any] | None) -> Evidence:
    """What an item reported; most pass, and of those a verdict needs to know nothing more."""
    if known is None:
        return MISSING
    return _PASSED if known["outcome"] == Outcome.PASSED.value else Evidence.model_validate(known)
