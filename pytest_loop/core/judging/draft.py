"""What a run is going to do, before it does it: its criteria, and its plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from pytest_loop.core.model.rules import TESTS_SOURCE as TESTS_SOURCE
from pytest_loop.core.model.rules import Criteria, Outcome, Phase, Plan, Rule, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule, build_levels
from pytest_loop.core.text.lengths import shorten

SHORTEST_PLAN = 3
LONGEST_PLAN = 5
LONGEST_STEP = 200
_NAMES_SHOWN = 3
_CATEGORY = re.compile(r"(?:.*::)?([ab]\.[^.\s]+)\.[^\s]+", re.IGNORECASE)


def build_run_criteria(plan: Plan, thresholds: Mapping[str, str], checks: Mapping[str, str]) -> RunCriteria:
    """One set of criteria from all that a session collected.

    Several files are judged as one: the highest threshold counts, and an id that two of them have gets its file's name.
    `checks` are the sentences among the checks, by key.
    """
    ids = Counter(rule.id for criteria in plan.criteria for rule in criteria.rules)
    rules = tuple(
        _frozen(rule, f"{criteria.source}::{rule.id}", ids[rule.id] > 1, checks)
        for criteria in plan.criteria
        for rule in criteria.rules
    )
    return RunCriteria(
        name=_listed([criteria.name for criteria in plan.criteria], "+") or "nothing",
        version=max((criteria.version for criteria in plan.criteria), default=1),
        phase=build_levels({phase: _threshold(plan.criteria, phase, thresholds) for phase in Phase}),
        rules=rules,
    )


def is_test_rule(rule: RunRule) -> bool:
    """Whether a rule is a Python test, and not one of a rule file."""
    return rule.key.startswith(f"{TESTS_SOURCE}::")


def is_module_rule(rule: RunRule) -> bool:
    """Whether a rule stands for a module that could not be imported when the run began."""
    return is_test_rule(rule) and rule.id.endswith(".py") and "::" not in rule.id


def add_module_rules(plan: Plan, paths: Iterable[str]) -> Plan:
    """The plan with a rule for each module of tests that cannot be imported: nobody knows yet what is in it."""
    new = tuple(Rule(id=path, description=f"{path} can be imported, and its tests pass") for path in paths)
    if not new:
        return plan
    own = next(
        (one for one in plan.criteria if one.source == TESTS_SOURCE), Criteria(name=TESTS_SOURCE, source=TESTS_SOURCE)
    )
    others = tuple(one for one in plan.criteria if one.source != TESTS_SOURCE)
    return plan.model_copy(update={"criteria": (*others, own.model_copy(update={"rules": (*own.rules, *new)}))})


def apply_baseline(
    criteria: RunCriteria, first: Mapping[str, Outcome], second: Mapping[str, Outcome]
) -> tuple[RunCriteria, tuple[str, ...], tuple[str, ...]]:
    """The criteria after two looks at the same files: what cannot decide anything does not block.

    Gives the rules that did not say the same twice, and those that were skipped or expected to fail, too.
    """
    unstable = tuple(rule.id for rule in criteria.rules if first.get(rule.key) is not second.get(rule.key))
    idle = (Outcome.SKIPPED, Outcome.XFAILED)
    unjudged = tuple(rule.id for rule in criteria.rules if first.get(rule.key) in idle and second.get(rule.key) in idle)
    changes: dict[str, dict[str, object]] = {name: {"severity": Severity.WARN} for name in unstable}
    changes |= {name: {"severity": Severity.INFO, "weight": Severity.INFO.weight} for name in unjudged}
    rules = tuple(rule.model_copy(update=changes.get(rule.id, {})) for rule in criteria.rules)
    made = RunCriteria(name=criteria.name, version=criteria.version, phase=criteria.phase, rules=rules)
    return made, unstable, unjudged


def _frozen(rule: Rule, key: str, is_shared: bool, checks: Mapping[str, str]) -> RunRule:
    fields = rule.model_dump()
    return RunRule.model_validate(fields | {"id": key if is_shared else rule.id, "key": key, "check": checks.get(key)})


def _threshold(criteria: Iterable[Criteria], phase: Phase, asked: Mapping[str, str]) -> Fraction:
    if phase.value in asked:
        return Fraction(asked[phase.value])
    return max((one.thresholds[phase] for one in criteria), default=Fraction(1))


def plan_steps(rules: Iterable[Rule], unmet: frozenset[str]) -> tuple[str, ...]:
    """Three to five short steps, each aimed at a group of rules: those that fail, or all where nobody knows yet."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        if not unmet or rule.id in unmet:
            groups.setdefault(_group(rule.id), []).append(rule)
    ranked = sorted(groups.items(), key=lambda group: -sum(rule.weight for rule in group[1]))
    steps = [_step(name, found) for name, found in ranked][:LONGEST_PLAN]
    fill = ("Read the task and the rules once more", "Keep what passes as it is", "Check the whole against the rules")
    return (*steps, *fill[: max(0, SHORTEST_PLAN - len(steps))])


def _group(name: str) -> str:
    """`a.correctness` of a rule's id; the file of a test's."""
    category = _CATEGORY.fullmatch(name)
    return category[1] if category else name.partition("::")[0]


def _step(name: str, rules: list[Rule]) -> str:
    return shorten(f"{name}: {_listed([shorten(rule.description, 60) for rule in rules], '; ')}", LONGEST_STEP)


def _listed(names: list[str], between: str) -> str:
    more = f"{between}{len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return between.join(names[:_NAMES_SHOWN]) + more
