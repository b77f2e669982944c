"""How a rule that only looks at files is run: reported as any test, without the machinery it has no use for.

Nearly all of the time of a small pytest item goes into capturing, logging and setting up what a content check never
touches. A rule keeps the ordinary way where that could be noticed: it asks for fixtures, runs code of the user, does
not pass, or a plugin wants to see its setup, call or teardown.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_loop.rules.collect import RuleFailed, RuleItem
from pytest_loop.rules.reports import properties

_SEEN = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown", "pytest_runtest_makereport")
_OURS = ("_pytest.", "pytest_loop.", "xdist.")


def is_alone(config: pytest.Config) -> bool:
    """Whether nobody but pytest itself watches how an item is run."""
    impls = [impl for name in _SEEN for impl in getattr(config.hook, name).get_hookimpls()]
    return all(_module(impl.plugin).startswith(_OURS) for impl in impls)


def _module(plugin: Any) -> str:
    return str(getattr(plugin, "__name__", None) or type(plugin).__module__)


class SlimProtocol:
    """Takes the place of pytest's own protocol for quiet rules; they have no setup that could be reported."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, RuleItem) or not item.judged.is_quiet or not _is_followed(item, nextitem):
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        keywords = {item.name: 1, "loop_rule": 1}
        hook.pytest_runtest_logreport(report=_call(item, keywords))
        hook.pytest_runtest_logreport(report=_passed(item, keywords, "teardown"))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def _is_followed(item: RuleItem, nextitem: pytest.Item | None) -> bool:
    """The last rule of a file goes the ordinary way: with it pytest takes down what earlier tests have left."""
    return isinstance(nextitem, RuleItem) and nextitem.parent is item.parent


def _passed(
    item: RuleItem, keywords: dict[str, Any], when: Any, started: float = 0.0, ended: float = 0.0
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=keywords,
        outcome="passed",
        longrepr=None,
        when=when,
        duration=ended - started,
        start=started,
        stop=ended,
        user_properties=item.user_properties,
    )


def _call(item: RuleItem, keywords: dict[str, Any]) -> pytest.TestReport:
    """Judge the rule; one that does not pass is reported in the ordinary way."""
    started = time.time()
    try:
        item.runtest()
    except (RuleFailed, pytest.skip.Exception) as error:
        return _told(item, error)
    rule = item.judged.rule
    item.user_properties.extend(properties(rule, "pass").items())
    report = _passed(item, keywords, "call", started, time.time())
    evidence = {"outcome": "passed", "seconds": report.duration, **item.kept}
    report.loop = {  # type: ignore[attr-defined]
        "evidence": evidence,
        "shown": "reused" if item.kept.get("reused") else "passed",
        "severity": rule.severity.value,
        "phase": rule.phase.value,
    }
    return report


def _told(item: RuleItem, error: BaseException) -> pytest.TestReport:
    def again() -> None:
        raise error

    call = pytest.CallInfo.from_call(again, when="call")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    if report.failed:
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)
    return report
