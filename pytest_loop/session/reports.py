"""Add evidence to the reports of items, and let only items with blocking rules fail the session."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from pathlib import Path

import pytest

from pytest_loop.core.judging.score import decide_verdict
from pytest_loop.core.model.rules import CriteriaScore, Evidence, Finding, Outcome, Rule, Severity, Verdict
from pytest_loop.rules.binding import Binding
from pytest_loop.rules.items import VOTES, FixtureRuleItem, RuleFailed, RuleItem

_LAST_LINES = 15
# pytest ends a shortened comparison with this.
_DIFF_ADVICE = "\n  Use -v to get more diff"


class Reports:
    """The plugin that adds evidence to reports, registered where items run: in the session, or in each worker."""

    def __init__(self, binding: Binding, baseline_failures: Collection[str]) -> None:
        self.binding = binding
        self.baseline_failures = baseline_failures

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        problem = self.binding.problems.get(item.nodeid)
        if problem and not isinstance(item, (RuleItem, FixtureRuleItem)):
            pytest.fail(problem, pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        is_result = report.when == "call" or not report.passed
        if is_result and (keys := self.binding.items.get(item.nodeid)):
            evidence = _make_evidence(call, report, item.config.rootpath)
            if fields := getattr(item, "evidence_fields", None):
                evidence = evidence.model_copy(update=fields)
            self._apply_evidence(item, report, evidence, {key: self.binding.rules[key] for key in keys})
        return report

    def _apply_evidence(
        self, item: pytest.Item, report: pytest.TestReport, evidence: Evidence, rules: dict[str, Rule]
    ) -> None:
        """Add the evidence to the report, and change the outcome if no rule of the item blocks."""
        strictest = max(rules.values(), key=lambda rule: (rule.is_blocking, rule.severity is Severity.WARN))
        failed_before = all(key in self.baseline_failures for key in rules)
        if report.failed and report.when != "call":
            status = "error"
        else:
            status = _choose_status(item, evidence, strictest, failed_before)
        report.loop = {  # type: ignore[attr-defined]  # pytest allows attributes of plugins
            "evidence": evidence.model_dump(mode="json", exclude_defaults=True),
            "shown": status,
            "severity": strictest.severity.value,
            "phase": strictest.phase.value,
        }
        if status in ("warned", "info", "missed", "known"):
            report.outcome = "passed"
        if evidence.outcome is Outcome.ASSUMED:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), (item.reportinfo()[1] or 0) + 1, evidence.text)
        _add_junit_properties(item, report, strictest, decide_verdict(strictest, evidence.outcome))


def add_junit_scores(config: pytest.Config, scores: Sequence[CriteriaScore]) -> None:
    """Add the scores to JUnit XML; the plugin that writes it offers a method and no hook."""
    for plugin in config.pluginmanager.get_plugins():
        if add_property := getattr(plugin, "add_global_property", None):
            for score in scores:
                name = "loop.score" if len(scores) == 1 else f"loop.score.{score.criteria}"
                add_property(name, f"{float(score.score):.4g}")


def _add_junit_properties(item: pytest.Item, report: pytest.TestReport, rule: Rule, verdict: Verdict) -> None:
    """Add the rule to the JUnit properties of an item; a later stage of the item replaces them."""
    properties = {
        "loop.severity": rule.severity.value,
        "loop.weight": f"{float(rule.weight):g}",
        "loop.phase": rule.phase.value,
        "loop.verdict": verdict.value,
    }
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] not in properties]
    item.user_properties += properties.items()
    report.user_properties = list(item.user_properties)


def _make_evidence(call: pytest.CallInfo[None], report: pytest.TestReport, root: Path) -> Evidence:
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, RuleFailed):
        return error.evidence.model_copy(update={"seconds": report.duration})
    findings = (_make_finding(report, root),) if report.failed else ()
    return Evidence(
        outcome=_find_outcome(report), text=_find_reason(report), findings=findings, seconds=report.duration
    )


def _find_outcome(report: pytest.TestReport) -> Outcome:
    if report.failed:
        return Outcome.FAILED if report.when == "call" else Outcome.ERROR
    if report.skipped:
        return Outcome.XFAILED if hasattr(report, "wasxfail") else Outcome.SKIPPED
    return Outcome.PASSED


def _find_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.partition(_DIFF_ADVICE)[0].rstrip() if crash else str(report.longrepr or "")


def _make_finding(report: pytest.TestReport, root: Path) -> Finding:
    """Return the message of a failing test, the line that raised it, and the last lines of its traceback."""
    where = ""
    if crash := getattr(report.longrepr, "reprcrash", None):
        path = Path(crash.path)
        where = f"{path.relative_to(root).as_posix() if path.is_relative_to(root) else path}:{crash.lineno}"
    lines = report.longreprtext.splitlines()
    return Finding(expected="", found=_find_reason(report), where=where, detail="\n".join(lines[-_LAST_LINES:]))


def _choose_status(item: pytest.Item, evidence: Evidence, rule: Rule, failed_before: bool) -> str:
    """Return the word under which pytest counts the item in its summary."""
    if evidence.outcome in (Outcome.PASSED, Outcome.SKIPPED, Outcome.XFAILED):
        return "reused" if evidence.reused else str(evidence.outcome.value)
    if evidence.outcome is Outcome.ASSUMED:
        return "assumed"
    if failed_before:
        return "known"
    if not rule.is_blocking:
        return "warned" if rule.severity is Severity.WARN else "info"
    if evidence.outcome is Outcome.UNCHECKED:
        return "error"
    return "missed" if _can_pass(item, rule) else str(evidence.outcome.value)


def _can_pass(item: pytest.Item, rule: Rule) -> bool:
    """Return whether enough repeats of a rule passed, or still can."""
    if rule.repeat == 1 or not isinstance(item, (RuleItem, FixtureRuleItem)):
        return False
    return item.session.stash[VOTES].decide(item.key, rule.need) is not False
