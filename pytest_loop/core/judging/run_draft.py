"""The draft of a run: its criteria and its plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pytest_loop.core.model.rules import TESTS_SOURCE, Criteria, Outcome, Phase, Rule, SessionPlan, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule, build_levels
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import limit_lines

MIN_PLAN_STEPS = 3
MAX_PLAN_STEPS = 5
MAX_STEP_LENGTH = 200
_MAX_NAMES = 3
_CATEGORY = re.compile(r"(?:.*::)?([ab]\.[^.\s]+)\.[^\s]+", re.IGNORECASE)


def build_run_criteria(plan: SessionPlan, thresholds: Mapping[str, str]) -> RunCriteria:
    """Combine all criteria of a session into those of a run.

    For each phase, `thresholds` takes precedence over the highest threshold of the criteria. An id that occurs in
    several files is prefixed with its file.
    """
    counts = Counter(rule.id for criteria in plan.criteria for rule in criteria.rules)
    checks = _collect_checks(plan)
    rules = tuple(
        _freeze_rule(rule, f"{criteria.source}::{rule.id}", counts[rule.id] > 1, checks)
        for criteria in plan.criteria
        for rule in criteria.rules
    )
    return RunCriteria(
        name=_join_some([criteria.name for criteria in plan.criteria], "+") or "nothing",
        version=max((criteria.version for criteria in plan.criteria), default=1),
        phase=build_levels({phase: _choose_threshold(plan.criteria, phase, thresholds) for phase in Phase}),
        rules=rules,
    )


def _collect_checks(plan: SessionPlan) -> dict[str, Any]:
    """Return the checks by key: those of rule files, and the tests that are bound to a rule."""
    tests: dict[str, Any] = {}
    for node_id, keys in plan.items.items():
        for key in keys:
            tests.setdefault(key, {"tests": []})["tests"].append(node_id)
    return tests | plan.checks


def find_changed_checks(criteria: RunCriteria, plan: SessionPlan) -> tuple[RunRule, ...]:
    """Return the rules of rule files whose checks have changed since the run began."""
    return tuple(
        rule
        for rule in criteria.rules
        if rule.check is not None and rule.key in plan.checks and plan.checks[rule.key] != rule.check
    )


def _freeze_rule(rule: Rule, key: str, is_ambiguous: bool, checks: Mapping[str, Any]) -> RunRule:
    check = checks.get(key, {"tests": [rule.id]})  # a test module that cannot be imported has no items
    names = {"id": key if is_ambiguous else rule.id, "key": key}
    return RunRule.model_validate(rule.model_dump() | names | {"check": check})


def _choose_threshold(all_criteria: Iterable[Criteria], phase: Phase, thresholds: Mapping[str, str]) -> Fraction:
    if phase.value in thresholds:
        return Fraction(thresholds[phase.value])
    return max((criteria.thresholds[phase] for criteria in all_criteria), default=Fraction(1))


def add_module_rules(plan: SessionPlan, paths: Iterable[str]) -> SessionPlan:
    """Add a rule for each test module that cannot be imported, because its tests are unknown."""
    return _add_test_rules(
        plan, tuple(Rule(id=path, description=f"{path} can be imported, and its tests pass") for path in paths)
    )


def _add_test_rules(plan: SessionPlan, rules: tuple[Rule, ...]) -> SessionPlan:
    if not rules:
        return plan
    empty = Criteria(name=TESTS_SOURCE, source=TESTS_SOURCE)
    tests = next((criteria for criteria in plan.criteria if criteria.source == TESTS_SOURCE), empty)
    others = (criteria for criteria in plan.criteria if criteria.source != TESTS_SOURCE)
    tests = tests.model_copy(update={"rules": (*tests.rules, *rules)})
    return plan.model_copy(update={"criteria": (*others, tests)})


def add_guards(plan: SessionPlan, suite: SessionPlan, exempt: Collection[str] = ()) -> SessionPlan:
    """Return the plan with all other tests of the suite as guards, except the tests in `exempt`."""
    goals = {f"{criteria.source}::{rule.id}" for criteria in plan.criteria for rule in criteria.rules}
    tests = next((criteria for criteria in suite.criteria if criteria.source == TESTS_SOURCE), None)
    names = [rule.id for rule in tests.rules if f"{TESTS_SOURCE}::{rule.id}" not in goals] if tests else []
    guards = tuple(
        Rule(id=name, description=name, weight=Fraction(0), guard=True) for name in names if name not in exempt
    )
    items = {key: keys for key, keys in suite.items.items() if key not in plan.items}
    sources = tuple(dict.fromkeys((*plan.doctest_sources, *suite.doctest_sources)))
    return _add_test_rules(plan.model_copy(update={"items": plan.items | items, "doctest_sources": sources}), guards)


def apply_baseline(
    criteria: RunCriteria, first: Mapping[str, Outcome], second: Mapping[str, Outcome]
) -> tuple[RunCriteria, tuple[str, ...], tuple[str, ...]]:
    """Relax rules on which two evaluations of the same files disagree, and drop guards that did not pass both.

    A rule with different outcomes becomes a warning; one that was twice skipped or expected to fail is only tracked.
    Return the criteria, the ids of the rules with different outcomes, and the ids of the tracked ones.
    """
    undecided = (Outcome.SKIPPED, Outcome.XFAILED)
    remaining = [rule for rule in criteria.rules if not rule.guard or _has_passed(rule, first, second)]
    unstable = tuple(rule.id for rule in remaining if first.get(rule.key) is not second.get(rule.key))
    unjudged = tuple(
        rule.id for rule in remaining if first.get(rule.key) in undecided and second.get(rule.key) in undecided
    )
    changes: dict[str, dict[str, object]] = {name: {"severity": Severity.WARN} for name in unstable}
    changes |= {name: {"severity": Severity.INFO, "weight": Severity.INFO.weight} for name in unjudged}
    rules = (rule.model_copy(update=changes.get(rule.id, {})) for rule in remaining)
    return criteria.replace_rules(rules), unstable, unjudged


def _has_passed(rule: RunRule, *baselines: Mapping[str, Outcome]) -> bool:
    return all(outcomes.get(rule.key) is Outcome.PASSED for outcomes in baselines)


def plan_steps(rules: Iterable[Rule], unmet: frozenset[str]) -> tuple[str, ...]:
    """Plan three to five short steps, one for each group of unmet rules, or of all rules if none is unmet."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        if not unmet or rule.id in unmet:
            groups.setdefault(_find_group(rule.id), []).append(rule)
    ranked = sorted(groups.items(), key=lambda group: -sum(rule.weight for rule in group[1]))
    steps = [_format_step(name, members) for name, members in ranked[:MAX_PLAN_STEPS]]
    fill = ("Read the task and the rules once more", "Keep what passes as it is", "Check the whole against the rules")
    return (*steps, *fill[: max(0, MIN_PLAN_STEPS - len(steps))])


def _find_group(rule_id: str) -> str:
    """Return `a.correctness` of `a.correctness.x`, or the file of a test."""
    category = _CATEGORY.fullmatch(rule_id)
    return category[1] if category else rule_id.partition("::")[0]


def _format_step(group: str, rules: list[Rule]) -> str:
    return shorten(f"{group}: {_join_some([shorten(rule.description, 60) for rule in rules], '; ')}", MAX_STEP_LENGTH)


def _join_some(names: Sequence[str], separator: str) -> str:
    return separator.join(limit_lines(names, _MAX_NAMES, "{} more"))
