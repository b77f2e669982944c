"""Runs for tests: a test states the events that matter, and the machine's commands supply the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Kind
from tests.event_factory import make_event


def make_rule(name: str = "a.x.y", severity: Severity = Severity.FAIL, **fields: Any) -> RunRule:
    fields.setdefault("weight", severity.weight)
    fields.setdefault("phase", Phase.B if name.startswith("b.") else Phase.A)
    fields.setdefault("description", f"what {name} asks for")
    return RunRule(id=name, severity=severity, **fields)


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class ScriptedRun:
    """A run in memory: its state and its events, without agents, files or sessions."""

    def __init__(self, *rules: RunRule, **fields: Any) -> None:
        criteria = fields.pop("criteria", None) or RunCriteria(rules=rules or (make_rule(), make_rule("b.x.y")))
        state = self._make_state(criteria).replace(**fields)
        self.machine = select_machine(state)
        self.state: Any = self.machine.begin(state)
        self.first_state = self.state
        self.events = [make_event(self.state, "run_started", {"state": self.state.model_dump(mode="json")})]
        self.versions = 0

    def _make_state(self, criteria: RunCriteria) -> RunState:
        return RunState(run_id="it-1", task_alias="it", task=Task(prompt="x"), criteria=criteria)

    def record(self, kind: Kind | str, **payload: Any) -> ScriptedRun:
        """Apply one event to the current state."""
        event = make_event(self.state, kind.value if isinstance(kind, Kind) else kind, payload)
        self.state = self.machine.apply(self.state, event)
        self.events.append(event)
        return self

    @property
    def due_kinds(self) -> list[Kind]:
        return [command.kind for command in self.machine.list_next_commands(self.state)]

    def advance_to(self, *kinds: Kind) -> ScriptedRun:
        """Apply default events until the machine commands one of these kinds, or the end."""
        while (commands := self.machine.list_next_commands(self.state)) and not any(
            command.kind in kinds for command in commands
        ):
            self.record(commands[0].kind, **self.build_payload(commands[0]))
        return self

    def complete(self, kind: Kind, **payload: Any) -> ScriptedRun:
        """Advance to an event of this kind, and apply it with these fields."""
        self.advance_to(kind)
        assert kind in self.due_kinds
        commands = self.machine.list_next_commands(self.state)
        defaults = self.build_payload(next(command for command in commands if command.kind is kind))
        return self.record(kind, **defaults | payload)

    def build_payload(self, command: Command) -> dict[str, Any]:
        """Return the default payload of a command."""
        if command.kind is Kind.PLAN_CREATED:
            return {"plan": ["one", "two", "three"]}
        if command.kind in (Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE):
            self.versions += 1
            return {"artifact_hash": hash_text(f"version {self.versions}")}
        if command.kind is Kind.CHECKS_PREPARED:
            return {"checks": [{"rule_id": name, "check": [{}]} for name in self.state.unprepared_rules]}
        if command.kind is Kind.EVALUATION_DONE:
            return self.build_evaluation({})
        if command.kind is Kind.CRITIQUE_DONE and self.state.evaluation:
            return build_critique(self.state.criteria, self.state.evaluation, self.state.progress.attempts).model_dump(
                mode="json"
            )
        return {"reason": command.reason.value} if command.reason else {}

    def build_evaluation(
        self, failing: Mapping[str, str], assumed: tuple[str, ...] = (), unchecked: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the payload of an evaluation in which these rules fail with these messages, and all others pass."""
        reported = {}
        for rule in self.state.criteria.rules:
            if rule.id in assumed:
                evidence = Evidence(outcome=Outcome.ASSUMED, text="nobody has looked")
            elif rule.id in unchecked:
                evidence = Evidence(outcome=Outcome.UNCHECKED, text="its tool is missing")
            elif rule.id in failing:
                evidence = Evidence(outcome=Outcome.FAILED, findings=(Finding(expected="", found=failing[rule.id]),))
            else:
                evidence = Evidence(outcome=Outcome.PASSED)
            reported[rule.key or rule.id] = [evidence]
        state = self.state
        evaluation = assess(state.criteria, state.phase, reported, state.progress.artifact_hash, state.evaluation)
        return evaluation.model_dump(mode="json", exclude_defaults=True) | {
            "score": evaluation.score,
            "passed": evaluation.passed,
        }

    def evaluate(
        self,
        *failing: str,
        assumed: tuple[str, ...] = (),
        unchecked: tuple[str, ...] = (),
        message: str = "no",
        **payload: Any,
    ) -> ScriptedRun:
        """Advance to the next evaluation, and let these rules fail in it."""
        self.advance_to(Kind.EVALUATION_DONE)
        evaluation = self.build_evaluation({name: f"{name}: {message}" for name in failing}, assumed, unchecked)
        return self.record(Kind.EVALUATION_DONE, **evaluation | payload)

    def finish(self) -> ScriptedRun:
        """Apply default events until the run is over."""
        return self.advance_to()
