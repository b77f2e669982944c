"""Runs that are told: a test says what is special, and the machine's own commands say the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Kind
from tests.event_factory import make_event


def a_rule(name: str = "a.x.y", severity: Severity = Severity.FAIL, **fields: Any) -> RunRule:
    fields.setdefault("weight", severity.weight)
    fields.setdefault("phase", Phase.B if name.startswith("b.") else Phase.A)
    fields.setdefault("description", f"what {name} asks for")
    return RunRule(id=name, severity=severity, **fields)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Story:
    """A run and what has happened in it."""

    def __init__(self, *rules: RunRule, **fields: Any) -> None:
        criteria = fields.pop("criteria", None) or RunCriteria(rules=rules or (a_rule(), a_rule("b.x.y")))
        state = self._make_state(criteria).replace(**fields)
        self.machine = select_machine(state)
        self.state: Any = self.machine.begin(state)
        self.first_state = self.state
        self.events = [make_event(self.state, "run_started", {"state": self.state.model_dump(mode="json")})]
        self.versions = 0

    def _make_state(self, criteria: RunCriteria) -> RunState:
        return RunState(run_id="it-1", task_alias="it", task=Task(prompt="x"), criteria=criteria)

    def happens(self, kind: Kind | str, **payload: Any) -> Story:
        """One event, wherever the run stands."""
        event = make_event(self.state, kind.value if isinstance(kind, Kind) else kind, payload)
        self.state = self.machine.apply(self.state, event)
        self.events.append(event)
        return self

    @property
    def todo(self) -> list[Kind]:
        return [command.kind for command in self.machine.next_commands(self.state)]

    def until(self, *kinds: Kind) -> Story:
        """All that the machine asks for, as it usually happens, up to one of these kinds or the end."""
        while (commands := self.machine.next_commands(self.state)) and not any(one.kind in kinds for one in commands):
            self.happens(commands[0].kind, **self.usual(commands[0]))
        return self

    def does(self, kind: Kind, **payload: Any) -> Story:
        """Everything up to that kind, and then that, with something special."""
        self.until(kind)
        assert kind in self.todo
        usual = self.usual(next(one for one in self.machine.next_commands(self.state) if one.kind is kind))
        return self.happens(kind, **usual | payload)

    def usual(self, command: Command) -> dict[str, Any]:
        if command.kind is Kind.PLAN_CREATED:
            return {"plan": ["one", "two", "three"]}
        if command.kind in (Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE):
            self.versions += 1
            return {"artifact_hash": digest(f"version {self.versions}")}
        if command.kind is Kind.CHECKS_PREPARED:
            return {"checks": [{"rule_id": name, "check": [{}]} for name in self.state.unprepared_rules]}
        if command.kind is Kind.EVALUATION_DONE:
            return self.judgement({})
        if command.kind is Kind.CRITIQUE_DONE and self.state.evaluation:
            return build_critique(self.state.criteria, self.state.evaluation, self.state.progress.attempts).model_dump(
                mode="json"
            )
        return {"reason": command.reason.value} if command.reason else {}

    def judgement(self, failing: Mapping[str, str], assumed: tuple[str, ...] = ()) -> dict[str, Any]:
        """The payload of an evaluation in which these rules fail with these messages, and all others pass."""
        reported = {}
        for rule in self.state.criteria.rules:
            if rule.id in assumed:
                evidence = Evidence(outcome=Outcome.ASSUMED, text="nobody has looked")
            elif rule.id in failing:
                evidence = Evidence(outcome=Outcome.FAILED, findings=(Finding(expected="", found=failing[rule.id]),))
            else:
                evidence = Evidence(outcome=Outcome.PASSED)
            reported[rule.id] = [evidence]
        state = self.state
        one = assess(state.criteria, state.phase, reported, state.progress.artifact_hash, state.evaluation)
        return one.model_dump(mode="json", exclude_defaults=True) | {"score": one.score, "passed": one.passed}

    def judged(self, *failing: str, assumed: tuple[str, ...] = (), message: str = "no", **payload: Any) -> Story:
        """Everything up to the next evaluation, and then that."""
        self.until(Kind.EVALUATION_DONE)
        found = self.judgement({name: f"{name}: {message}" for name in failing}, assumed)
        return self.happens(Kind.EVALUATION_DONE, **found | payload)

    def to_the_end(self) -> Story:
        return self.until()


@pytest.fixture(scope="session")
def tell() -> Callable[..., Story]:
    """Begins a story: `tell(rule, rule, max_iterations=2)`."""
    return Story


@pytest.fixture(scope="session")
def rule() -> Callable[..., RunRule]:
    """Makes a rule: its phase from its id, its weight from its severity."""
    return a_rule
