"""Collect evidence from the reports of a session, and score the criteria of its plan with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_loop.core.judging.score import MISSING, evaluate_criteria
from pytest_loop.core.model.rules import CriteriaScore, Evidence, Outcome, Phase, SessionPlan

_PASSED = Evidence(outcome=Outcome.PASSED)


class Recorder:
    """Collect the evidence in reports, and pass it to `send`; with `keeps_all`, also of items without rules."""

    def __init__(self, send: Callable[[str, dict[str, Any]], None] | None = None, *, keeps_all: bool = False) -> None:
        self.evidence: dict[str, dict[str, Any]] = {}
        self._send = send
        self._keeps_all = keeps_all

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == "rerun":  # of pytest-rerunfailures: another attempt follows
            return
        details = getattr(report, "loop", None)  # added by `Reports`
        if details is not None:
            self._add(report.nodeid, details["evidence"])
        elif report.failed:  # the controller reports a worker that crashed
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr)
            self._add(report.nodeid, {"outcome": Outcome.ERROR.value, "text": text})
        elif self._keeps_all and (report.when == "call" or report.skipped):
            self._add(report.nodeid, {"outcome": report.outcome})

    def _add(self, nodeid: str, evidence: dict[str, Any]) -> None:
        self.evidence[nodeid] = evidence
        if self._send is not None:
            self._send(nodeid, evidence)

    @property
    def durations(self) -> dict[str, float]:
        return {nodeid: float(evidence.get("seconds", 0.0)) for nodeid, evidence in self.evidence.items()}

    @property
    def has_evidence(self) -> bool:
        return bool(self.evidence)


def score_criteria(plan: SessionPlan, phase: Phase, reported: Mapping[str, dict[str, Any]]) -> list[CriteriaScore]:
    """Score every set of criteria that has a selected rule."""
    by_rule: dict[str, list[Evidence]] = {}
    for nodeid, keys in plan.items.items():
        evidence = _parse_evidence(reported.get(nodeid))
        for key in keys:
            by_rule.setdefault(key, []).append(evidence)
    scores = []
    for criteria in plan.criteria:
        rule_keys = {rule.id: f"{criteria.source}::{rule.id}" for rule in criteria.rules}
        evidence_by_rule = {rule_id: by_rule[key] for rule_id, key in rule_keys.items() if key in by_rule}
        if (score := evaluate_criteria(criteria, phase, evidence_by_rule)).results:
            scores.append(score)
    return scores


def _parse_evidence(data: dict[str, Any] | None) -> Evidence:
    """Parse reported evidence; skip validation for a pass, which is the usual case."""
    if data is None:
        return MISSING
    return _PASSED if data["outcome"] == Outcome.PASSED.value else Evidence.model_validate(data)
