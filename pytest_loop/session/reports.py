"""What the report of an item says about its rules; a rule that does not block never fails the session."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.judging.score import decide_verdict
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Rule, Severity, Verdict
from pytest_loop.rules.binding import Binding
from pytest_loop.rules.items import TALLY, FixtureRuleItem, RuleFailed, RuleItem

LAST_LINES = 15


class Reports:
    """Lives where the items run: in the session itself, or in each xdist worker."""

    def __init__(self, binding: Binding, known_failures: Collection[str]) -> None:
        self.binding = binding
        self.known = known_failures

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
        keys = self.binding.items.get(item.nodeid)
        if keys and (report.when == "call" or not report.passed):
            rules = self.binding.rules_of(item.nodeid)
            evidence = _evidence(call, report, item.config.rootpath).model_copy(update=getattr(item, "kept", {}))
            self._settle(item, report, evidence, dict(zip(keys, rules, strict=True)))
        return report

    def _settle(self, item: pytest.Item, report: pytest.TestReport, evidence: Evidence, rules: dict[str, Rule]) -> None:
        """Note the evidence on the report, and keep what does not block from failing the session."""
        main = max(rules.values(), key=lambda rule: (rule.is_blocking, rule.severity is Severity.WARN))
        answer = decide_verdict(main, evidence.outcome)
        known = all(key in self.known for key in rules)
        shown = _shown(item, evidence, main, known) if report.when == "call" or not report.failed else "error"
        report.loop = {"evidence": evidence.model_dump(mode="json", exclude_defaults=True), "shown": shown}  # type: ignore[attr-defined]
        report.loop |= {"severity": main.severity.value, "phase": main.phase.value}  # type: ignore[attr-defined]
        if shown in ("warned", "info", "missed", "known"):
            report.outcome = "passed"
        if evidence.outcome is Outcome.ASSUMED:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), (item.reportinfo()[1] or 0) + 1, evidence.text)
        _note_properties(item, report, main, answer)


def note_passed(item: pytest.Item, report: pytest.TestReport, rule: Rule, kept: Mapping[str, Any]) -> None:
    """What `Reports` would note on such a report."""
    item.user_properties += properties(rule.severity, rule.weight, rule.phase, "pass")
    report.user_properties = item.user_properties
    report.loop = {  # type: ignore[attr-defined]
        "evidence": {"outcome": "passed", "seconds": report.duration, **kept},
        "shown": "reused" if kept.get("reused") else "passed",
        "severity": rule.severity.value,
        "phase": rule.phase.value,
    }


@cache
def properties(severity: Severity, weight: Fraction, phase: Phase, verdict: str) -> tuple[tuple[str, str], ...]:
    """What JUnit XML says about a rule; the same for most rules of a file."""
    return (
        ("loop.severity", severity.value),
        ("loop.weight", f"{float(weight):g}"),
        ("loop.phase", phase.value),
        ("loop.verdict", verdict),
    )


def _note_properties(item: pytest.Item, report: pytest.TestReport, rule: Rule, answer: Verdict) -> None:
    """JUnit properties; the last phase that has something to say wins."""
    ours = properties(rule.severity, rule.weight, rule.phase, answer.value)
    names = [name for name, _ in ours]
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] not in names]
    item.user_properties += ours
    report.user_properties = list(item.user_properties)


def _evidence(call: pytest.CallInfo[None], report: pytest.TestReport, root: Path) -> Evidence:
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, RuleFailed):
        return error.evidence.model_copy(update={"seconds": report.duration})
    findings = (_finding(report, root),) if report.failed else ()
    return Evidence(outcome=_outcome(report), text=_reason(report), findings=findings, seconds=report.duration)


def _outcome(report: pytest.TestReport) -> Outcome:
    if report.failed:
        return Outcome.FAILED if report.when == "call" else Outcome.ERROR
    if report.skipped:
        return Outcome.XFAILED if hasattr(report, "wasxfail") else Outcome.SKIPPED
    return Outcome.PASSED


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr or "")


def _finding(report: pytest.TestReport, root: Path) -> Finding:
    """What a failing test says: its message, where it was raised, and the last lines that led to it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    where = ""
    if crash:
        path = Path(crash.path)
        where = f"{path.relative_to(root).as_posix() if path.is_relative_to(root) else path}:{crash.lineno}"
    lines = report.longreprtext.splitlines()
    return Finding(expected="", found=_reason(report), where=where, detail="\n".join(lines[-LAST_LINES:]))


def _shown(item: pytest.Item, evidence: Evidence, rule: Rule, known: bool) -> str:
    """The word under which pytest counts the item."""
    if evidence.outcome in (Outcome.PASSED, Outcome.SKIPPED, Outcome.XFAILED):
        if evidence.reused:
            return "reused"
        return str(evidence.outcome.value)
    if evidence.outcome is Outcome.ASSUMED:
        return "assumed"
    if known:
        return "known"
    if not rule.is_blocking:
        return "warned" if rule.severity is Severity.WARN else "info"
    return "missed" if _still_open(item, rule) else str(evidence.outcome.value)


def _still_open(item: pytest.Item, rule: Rule) -> bool:
    """Whether other repeats of the rule can still make up for this one, or have done so."""
    if rule.repeat == 1 or not isinstance(item, (RuleItem, FixtureRuleItem)):
        return False
    return item.session.stash[TALLY].decision(item.key, rule.need) is not False
