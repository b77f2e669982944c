"""A draft combines the criteria of a session and plans steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.judging.run_draft import (
    MAX_STEP_LENGTH,
    add_guards,
    add_module_rules,
    apply_baseline,
    build_run_criteria,
    find_changed_checks,
    plan_steps,
)
from pytest_loop.core.model.rules import Criteria, Outcome, Phase, Rule, SessionPlan
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from tests.core.scripted_run import make_rule


def build_criteria(name: str, *ids: str, a: str = "0.8", b: str = "0.9", **fields: Any) -> Criteria:
    rules = tuple(Rule(id=rule_id, description=f"{name} {rule_id}") for rule_id in ids)
    thresholds = {Phase.A: Fraction(a), Phase.B: Fraction(b)}
    return Criteria(name=name, source=f"{name}.rules.yaml", rules=rules, thresholds=thresholds, **fields)


# -- criteria


def test_criteria_of_one_file_are_taken_over() -> None:
    criteria = build_run_criteria(SessionPlan(criteria=(build_criteria("docs", "a.x.y", "b.x.z", version=3),)), {})
    assert (criteria.name, criteria.version, [rule.id for rule in criteria.rules]) == ("docs", 3, ["a.x.y", "b.x.z"])
    assert [rule.key for rule in criteria.rules] == ["docs.rules.yaml::a.x.y", "docs.rules.yaml::b.x.z"]
    assert {phase: level.threshold for phase, level in criteria.phase.items()} == {
        Phase.A: Fraction(4, 5),
        Phase.B: Fraction(9, 10),
    }


def test_several_files_are_combined_with_the_highest_thresholds() -> None:
    criteria = build_run_criteria(
        SessionPlan(criteria=(build_criteria("one", "a.x.y", a="0.5"), build_criteria("two", "a.x.z", b="0.95"))),
        {},
    )
    assert criteria.name == "one+two"
    assert (criteria.phase[Phase.A].threshold, criteria.phase[Phase.B].threshold) == (Fraction(4, 5), Fraction(19, 20))


def test_thresholds_of_the_settings_win() -> None:
    criteria = build_run_criteria(SessionPlan(criteria=(build_criteria("one", "a.x.y"),)), {"A": "0.1"})
    assert (criteria.phase[Phase.A].threshold, criteria.phase[Phase.B].threshold) == (Fraction(1, 10), Fraction(9, 10))


def test_duplicate_id_is_prefixed_with_its_file() -> None:
    criteria = build_run_criteria(
        SessionPlan(criteria=(build_criteria("one", "a.x.y", "a.x.z"), build_criteria("two", "a.x.y"))), {}
    )
    assert [rule.id for rule in criteria.rules] == ["one.rules.yaml::a.x.y", "a.x.z", "two.rules.yaml::a.x.y"]


def test_checks_are_stored_with_their_rules() -> None:
    checks = {"one.rules.yaml::a.x.y": {"contains": "# Guide"}, "one.rules.yaml::a.x.z": "It is polite"}
    tests = Criteria(name="tests", source="tests", rules=(Rule(id="a.sum", description="It adds"),))
    items = {f"test_sum.py::test_{name}": ("tests::a.sum",) for name in ("one", "two")}
    plan = SessionPlan(criteria=(build_criteria("one", "a.x.y", "a.x.z"), tests), checks=checks, items=items)
    criteria = build_run_criteria(plan, {})
    assert [rule.check for rule in criteria.rules] == [
        {"contains": "# Guide"},
        "It is polite",
        {"tests": ["test_sum.py::test_one", "test_sum.py::test_two"]},
    ]


def test_check_of_a_rule_file_that_has_changed_is_found() -> None:
    plan = SessionPlan(
        criteria=(build_criteria("one", "a.x.y", "a.x.z"),),
        checks={"one.rules.yaml::a.x.y": {"contains": "blue"}, "one.rules.yaml::a.x.z": "It is polite"},
    )
    criteria = build_run_criteria(plan, {})
    assert find_changed_checks(criteria, plan) == ()
    changed = plan.model_copy(update={"checks": {"one.rules.yaml::a.x.y": {"contains": ""}}})
    assert [rule.id for rule in find_changed_checks(criteria, changed)] == ["a.x.y"]
    older = RunCriteria(rules=tuple(rule.model_copy(update={"check": None}) for rule in criteria.rules))
    assert find_changed_checks(older, changed) == (), "runs of earlier versions did not store checks"


def test_name_of_many_or_no_files_is_short() -> None:
    files = tuple(build_criteria(f"file{number}", f"a.x.y{number}") for number in range(9))
    assert build_run_criteria(SessionPlan(criteria=files), {}).name == "file0+file1+file2+6 more"
    nothing = build_run_criteria(SessionPlan(), {})
    assert (nothing.name, nothing.version, nothing.phase[Phase.A].threshold) == ("nothing", 1, Fraction(1))


# -- the plan


def test_plan_has_a_step_for_each_group_of_rules_heaviest_first() -> None:
    rules = [
        make_rule("a.style.names", weight=1, description="Names are short"),
        make_rule("a.correctness.paths", description="All paths are there"),
        make_rule("a.correctness.types", description="All types are right"),
        make_rule("it.rules.yaml::b.quality.depth", description="It goes deep"),
    ]
    assert plan_steps(rules, frozenset()) == (
        "a.correctness: All paths are there; All types are right",
        "b.quality: It goes deep",
        "a.style: Names are short",
    )


def test_plan_covers_only_failing_rules() -> None:
    rules = [make_rule("a.x.y", description="One"), make_rule("a.z.y", description="Two")]
    assert plan_steps(rules, frozenset({"a.z.y"})) == (
        "a.z: Two",
        "Read the task and the rules once more",
        "Keep what passes as it is",
    )


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("a.correctness.paths", "a.correctness"),
        ("A.correctness.paths.deep", "A.correctness"),
        ("tests/test_cart.py::test_total[1.0.0]", "tests/test_cart.py"),
        ("tests/test_cart.py::TestIt::test_total", "tests/test_cart.py"),
        ("x.rules.yaml::a.correctness.paths", "a.correctness"),
        ("plain", "plain"),
        ("a.two", "a.two"),
    ],
)
def test_rules_are_grouped_by_category_and_tests_by_file(name: str, group: str) -> None:
    assert plan_steps([make_rule(name, description="x")], frozenset())[0] == f"{group}: x"


def test_step_of_a_large_group_is_short() -> None:
    rules = [make_rule(f"a.x.y{number}", description=f"Thing\n{number} " + "z" * 99) for number in range(9)]
    step = plan_steps(rules, frozenset())[0]
    assert step.startswith("a.x: Thing 0 zzz")
    assert len(step) <= MAX_STEP_LENGTH


def test_omitted_rules_of_a_step_are_counted() -> None:
    rules = [make_rule(f"a.x.y{number}", description=f"T{number}") for number in range(5)]
    assert plan_steps(rules, frozenset())[0] == "a.x: T0; T1; T2; 2 more"


@given(
    st.lists(st.builds(Rule, id=st.text(max_size=20), description=st.text(max_size=300)), max_size=30),
    st.frozensets(st.text(max_size=20), max_size=3),
)
def test_plan_has_three_to_five_short_steps(rules: list[Rule], unmet: frozenset[str]) -> None:
    steps = plan_steps(rules, unmet)
    assert 3 <= len(steps) <= 5
    assert all(len(step) <= MAX_STEP_LENGTH and "\n" not in step for step in steps)


def test_unstable_and_skipped_rules_do_not_block() -> None:
    names = ["stable", "flaky", "skipped", "expected", "gone"]
    rules = tuple(RunRule(id=name, description=name, key=f"tests::{name}") for name in names)
    first = {
        "tests::stable": Outcome.FAILED,
        "tests::flaky": Outcome.FAILED,
        "tests::skipped": Outcome.SKIPPED,
        "tests::expected": Outcome.XFAILED,
    }
    second = {**first, "tests::flaky": Outcome.PASSED}
    criteria, unstable, unjudged = apply_baseline(RunCriteria(rules=rules), first, second)
    assert (unstable, unjudged) == (("flaky",), ("skipped", "expected"))
    assert [rule.severity.value for rule in criteria.rules] == ["fail", "warn", "info", "info", "fail"]
    assert [rule.id for rule in criteria.get_active_rules(Phase.A)] == names
    assert criteria.by_id["skipped"].weight == 0


def test_module_that_cannot_be_imported_becomes_a_rule() -> None:
    plan = SessionPlan(criteria=(Criteria(name="x", source="x.rules.yaml", rules=(Rule(id="a.x", description="x"),)),))
    assert add_module_rules(plan, ()) is plan
    both = add_module_rules(add_module_rules(plan, ["test_a.py"]), ["test_b.py"])
    rules = build_run_criteria(both, {}).rules
    assert [rule.key for rule in rules] == ["x.rules.yaml::a.x", "tests::test_a.py", "tests::test_b.py"]
    assert [rule.is_module for rule in rules] == [False, True, True]
    assert [rule.is_test for rule in rules] == [False, True, True]


# -- guards


def build_test_plan(*ids: str) -> SessionPlan:
    tests = Criteria(name="tests", source="tests", rules=tuple(Rule(id=name, description=name) for name in ids))
    return SessionPlan(criteria=(tests,) if ids else (), items={name: (f"tests::{name}",) for name in ids})


def test_tests_that_are_no_goal_become_guards_without_weight() -> None:
    goals = SessionPlan(criteria=(build_criteria("lint", "a.lint.clean"), *build_test_plan("t.py::goal").criteria))
    plan = add_guards(goals, build_test_plan("t.py::goal", "t.py::other", "t.py::named"), exempt=("t.py::named",))
    criteria = build_run_criteria(plan, {})
    assert [(rule.id, rule.weight, rule.is_blocking) for rule in criteria.guards] == [
        ("t.py::other", Fraction(0), True)
    ]
    assert [rule.id for rule in criteria.goals] == ["a.lint.clean", "t.py::goal"]
    assert "t.py::other" in plan.items


def test_without_other_tests_there_are_no_guards() -> None:
    plan = SessionPlan(criteria=(build_criteria("lint", "a.lint.clean"),))
    assert add_guards(plan, SessionPlan()) == plan


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SKIPPED, Outcome.XFAILED, None])
def test_guard_that_does_not_pass_at_baseline_is_dropped(outcome: Outcome | None) -> None:
    rules = (make_rule("t::x", guard=True, key="tests::t::x"), make_rule("t::y", guard=True, key="tests::t::y"))
    first = {"tests::t::y": Outcome.PASSED, **({"tests::t::x": outcome} if outcome else {})}
    criteria, unstable, unjudged = apply_baseline(RunCriteria(rules=rules), first, first)
    assert ([rule.id for rule in criteria.rules], unstable, unjudged) == (["t::y"], (), ())
