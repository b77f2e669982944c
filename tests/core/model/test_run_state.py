"""The stored state of a run."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_criteria import Level, RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.session_order import SessionOrder


def make_state(**fields: Any) -> RunState:
    return RunState.model_validate({"run_id": "x-1", "task_alias": "x", "task": {"prompt": "y"}, **fields})


def test_new_run_has_the_fields_and_defaults_of_the_format() -> None:
    fields = make_state().model_dump(mode="json")
    expected = {
        "run_id": "x-1", "task_alias": "x", "status": "running", "iteration": 1, "max_iterations": 4,
        "max_completed_phase_seconds": None, "completed_phase_seconds": 0, "phase_started_epoch_seconds": None,
        "phase": "A", "current_step": "PLAN", "task": {"prompt": "y", "ideal_result": ""},
        "criteria": {
            "name": "loop_default_v1", "version": 1, "rules": [],
            "phase": {
                "A": {"threshold": 0.8, "active_levels": ["A"]},
                "B": {"threshold": 0.9, "active_levels": ["A", "B"]},
            },
        },
        "plan": [], "prepared_checks": None, "evaluation": None, "critique": None,
        "stop": {"passed": False, "reason": ""}, "last_score": 0, "stagnation_count": 0,
        "created_at": "", "updated_at": "",
    }  # fmt: skip
    assert {name: fields[name] for name in expected} == expected


@pytest.mark.parametrize("name", ["max_completed_phase_seconds", "max_iterations", "iteration"])
@pytest.mark.parametrize("value", ["600", 0, -1, 600.5, True])
def test_limit_is_a_positive_integer(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        make_state(**{name: value})


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1, "a"])
def test_score_is_a_number_from_zero_to_one(score: object) -> None:
    with pytest.raises(ValidationError):
        Evaluation.model_validate({"score": score, "passed": True})


def test_unknown_keys_are_kept() -> None:
    state = make_state(mood="good")
    assert RunState.model_validate_json(state.model_dump_json()).model_extra == {"mood": "good"}
    event = Event.model_validate(
        {"ts": "", "run_id": "", "iteration": 1, "phase": "A", "step": "", "event": "x", "mood": "good"}
    )
    assert event.model_dump()["mood"] == "good"


def test_state_that_is_no_object_is_refused() -> None:
    with pytest.raises(ValidationError):
        RunState.model_validate([])


@pytest.mark.parametrize(
    ("written", "exact", "stored"),
    [
        (0.9, Fraction(9, 10), 0.9),
        (1, Fraction(1), 1),
        ("5/6", Fraction(5, 6), "5/6"),
        (0.1, Fraction(1, 10), 0.1),
        (2.5, Fraction(5, 2), 2.5),
    ],
)
def test_numbers_stay_exact_in_json(written: object, exact: Fraction, stored: object) -> None:
    level = Level.model_validate({"threshold": written, "active_levels": ["A"]})
    rule = RunRule.model_validate({"id": "a.x.y", "description": "x", "weight": written})
    assert (level.threshold, rule.weight) == (exact, exact)
    assert (level.model_dump(mode="json")["threshold"], rule.model_dump(mode="json")["weight"]) == (stored, stored)
    assert Level.model_validate_json(level.model_dump_json()) == level
    assert RunRule.model_validate_json(rule.model_dump_json()) == rule


def test_phase_b_includes_the_rules_of_phase_a() -> None:
    rules = (
        RunRule(id="a.x.y", description="x"),
        RunRule(id="b.x.y", description="x", phase=Phase.B),
    )
    criteria = RunCriteria(rules=rules)
    assert (criteria.get_active_rules(Phase.A), criteria.get_active_rules(Phase.B)) == (rules[:1], rules)
    assert criteria.has_phase_b
    assert not RunCriteria(rules=rules[:1]).has_phase_b


def test_session_order_survives_json() -> None:
    order = SessionOrder(
        phase=Phase.B, artifact="x.md", prepared_checks={"k": [{"contains": "x"}]}, confirmed_rules=("k",), channel=7
    )
    assert SessionOrder.model_validate_json(order.model_dump_json()) == order


def test_task_survives_json() -> None:
    assert Task.model_validate_json(Task(prompt="{a}\n$b %s").model_dump_json()).prompt == "{a}\n$b %s"


def test_unknown_field_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="a run has no mood"):
        make_state().replace(iteration=2, mood="good")
