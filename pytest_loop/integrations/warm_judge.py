"""Judge the project in warm sessions for a server, and report what changed since the call before."""

from __future__ import annotations

import os
import secrets
import sys
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pytest

from pytest_loop.cli.document import resolve_artifact
from pytest_loop.cli.session_arguments import build_judging_arguments
from pytest_loop.cli.stop_hook import AllowedError, StopHook
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.stop_message import Message
from pytest_loop.errors import LoopError
from pytest_loop.processes import process_marks
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session.judge_service import start_judge_for_run
from pytest_loop.session.result import assess_session
from pytest_loop.settings.settings import Settings

Data = dict[str, Any]


@dataclass
class WarmJudge:
    """Evaluate the rules of a project; the fork server starts with the first evaluation."""

    config: pytest.Config
    settings: Settings
    sessions: SessionFactory = field(init=False)
    _last: tuple[RunCriteria, Evaluation] | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.sessions = SessionFactory(self.settings, lambda line: print(line, file=sys.stderr))
        self.sessions.cache_bytecode(is_new=False)  # Python's own cache misses the second of two edits in a second

    def close(self) -> None:
        self.sessions.close()

    def evaluate(self) -> Data:
        """Judge once, and describe the verdict and what changed since the last call."""
        if os.environ.get(process_marks.MARK):
            return {"passed": None, "reason": "a run of pytest-loop is at work here, and judges by itself"}
        with self._lock:
            try:
                return self._evaluate()
            except LoopError as error:
                return {"passed": None, "reason": f"nothing could be judged: {error}"}

    def list_rules(self) -> list[Data]:
        """Return the rules with their last verdicts; judge before the first call, and return why if that fails."""
        answer = self.evaluate() if self._last is None else {}
        if self._last is None:
            return [answer]
        criteria, evaluation = self._last
        return [
            {
                "id": rule.id,
                "description": rule.description,
                "severity": rule.severity.value,
                "source": rule.source,
                "passes": rule.id not in evaluation.unmet,
            }
            for rule in criteria.rules
            if not rule.held_out
        ]

    def _evaluate(self) -> Data:
        hook = StopHook(self.config, self.settings, Message())
        session = self.sessions.make(build_judging_arguments(self.settings), time.time())
        judge = start_judge_for_run(self.config, self.settings)
        order = SessionOrder(
            phase=Phase.B,
            artifact=str(resolve_artifact(self.settings) or ""),
            canary=secrets.token_hex(8),
            confirmed_rules=self.settings.judging.confirm,
            judge_address=judge.address if judge else "",
            judge_key=judge.key if judge else "",
        )
        try:
            result = session.evaluate(order)
        finally:
            if judge:
                judge.close()
        score = self.config.hook.pytest_loop_score
        criteria, evaluation = assess_session(result, self.settings.judging.threshold, score)
        before = self._last[1] if self._last else None
        self._last = criteria, evaluation
        if not criteria.rules:
            return {"passed": None, "reason": "nothing to judge: there are neither tests nor rules"}
        try:
            critique = hook.find_objection(criteria, evaluation, result)
        except AllowedError as error:
            return {"passed": None, "reason": str(error)}
        return {
            "passed": not critique,
            "score": evaluation.score,
            "rules": {"total": evaluation.total, "passing": evaluation.passing},
            "failing": sorted(evaluation.unmet),
            "since_last_call": _describe_changes(before, evaluation),
            "critique": critique,
        }


def _describe_changes(before: Evaluation | None, now: Evaluation) -> Data | None:
    """Return the rules that began or ceased to pass; None for the first evaluation."""
    if before is None:
        return None
    return {"fixed": sorted(before.unmet - now.unmet), "broken": sorted(now.unmet - before.unmet)}
