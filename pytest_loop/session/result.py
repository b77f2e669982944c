"""The result of one session, read from the messages that it sent through its pipe."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.run_draft import add_module_rules, build_run_criteria, is_module_rule
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Evidence, Outcome, Phase, SessionPlan
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.session.history import is_failure


@dataclass
class SessionResult:
    """The plan of a session, the evidence and problems that it reported, and how it ended."""

    plan: SessionPlan | None = None
    evidence: dict[str, Evidence] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    canaries: list[bool] = field(default_factory=list)
    plugins: frozenset[str] = frozenset()
    running_item: str = ""
    exit_status: int | None = None
    ending: str = ""
    output: str = ""

    @property
    def has_failures(self) -> bool:
        return any(map(is_failure, self.evidence.values()))

    @property
    def has_reused_evidence(self) -> bool:
        return any(evidence.reused for evidence in self.evidence.values())

    def group_by_rule(self) -> dict[str, list[Evidence]]:
        """Return the evidence of each rule; an item without a report is missing."""
        groups: dict[str, list[Evidence]] = {}
        for nodeid, keys in (self.plan.items if self.plan else {}).items():
            for key in keys:
                groups.setdefault(key, []).append(self.evidence.get(nodeid) or self.make_missing_evidence(nodeid))
        return groups

    def find_module_evidence(self, path: str) -> list[Evidence]:
        """Return the evidence of all tests in a module; a module that cannot be imported is missing."""
        evidence = [piece for nodeid, piece in self.evidence.items() if nodeid.startswith(f"{path}::")]
        return evidence if evidence and path not in self.problems else [self.make_missing_evidence()]

    def make_missing_evidence(self, nodeid: str = "") -> Evidence:
        """Return evidence that says why an item did not report."""
        if self.problems:
            text = f"not verified: {'; '.join(f'{name}: {_last_line(text)}' for name, text in self.problems.items())}"
        elif self.exit_status is not None:
            text = "not verified: no report arrived"
        elif nodeid == self.running_item:
            text = f"not verified: the session died here ({self.ending})"
        else:
            text = f"not verified: the session died ({self.ending}) in {self.running_item or 'its collection'}"
        return Evidence(outcome=Outcome.MISSING, text=text)

    def read_messages(self, descriptor: int) -> None:
        """Apply every message of a pipe until it is closed."""
        with os.fdopen(descriptor, "rb") as pipe:
            for line in pipe:
                try:
                    self._apply(json.loads(line))
                except (ValueError, KeyError, TypeError):  # the code under test may write into the pipe
                    continue

    def _apply(self, message: dict[str, Any]) -> None:
        if "plan" in message:
            self.plan = SessionPlan.model_validate(message["plan"])
        elif "evidence" in message:
            for nodeid, evidence in message["evidence"]:
                self.evidence[nodeid] = Evidence.model_validate(evidence)
        elif "problem" in message:
            self.problems[str(message["problem"])] = str(message["text"])
        elif "canary" in message:
            self.canaries.append(message["canary"] is True)
        elif "plugins" in message:
            self.plugins = frozenset(map(str, message["plugins"]))
        elif "start" in message:
            self.running_item = str(message["start"])
        elif "exit_status" in message:
            self.exit_status = int(message["exit_status"])


def assess_session(
    result: SessionResult, thresholds: Mapping[str, str], score: Callable[..., float | None]
) -> tuple[RunCriteria, Evaluation]:
    """Return the criteria and the evaluation of one session outside a run; `score` may replace the usual score."""
    plan = add_module_rules(result.plan or SessionPlan(), (path for path in result.problems if path.endswith(".py")))
    criteria = build_run_criteria(plan, thresholds, plan.sentences)
    modules = {rule.key: result.find_module_evidence(rule.id) for rule in criteria.rules if is_module_rule(rule)}
    evidence = result.group_by_rule() | modules
    return criteria, assess(criteria, Phase.B, evidence, "", None, result.make_missing_evidence(), score)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
