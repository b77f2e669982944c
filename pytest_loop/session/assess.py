"""One evaluation that belongs to no run: what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.draft import add_module_rules, build_run_criteria, is_module_rule
from pytest_loop.core.model.evaluation import Assessment
from pytest_loop.core.model.rules import Phase, Plan
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.session.runner import Judgement


def judged(
    judgement: Judgement, thresholds: Mapping[str, str], ask: Callable[..., float | None]
) -> tuple[RunCriteria, Assessment]:
    """What the session collected, and what its rules say; all of them are active, and `ask` may score them."""
    plan = add_module_rules(judgement.plan or Plan(), (one for one in judgement.problems if one.endswith(".py")))
    criteria = build_run_criteria(plan, thresholds, plan.sentences)
    modules = {rule.key: judgement.of_module(rule.id) for rule in criteria.rules if is_module_rule(rule)}
    reported = judgement.by_rule() | modules
    return criteria, assess(criteria, Phase.B, reported, "", None, judgement.missing(), ask)
