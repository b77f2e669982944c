"""Build the data of the grid of rules and evaluations, with every text stored once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import CritiqueDone
from pytest_loop.core.model.evaluation import Critique, Evaluation, Issue, RuleResult
from pytest_loop.core.model.rules import Finding, Severity, Verdict
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import clip_text
from pytest_loop.show.html.score_chart import format_label
from pytest_loop.show.html.texts import measure_escaped_size, reveal_lines
from pytest_loop.show.job_summary import EvaluationEntry

MAX_EVALUATIONS = 200
MAX_FINDINGS = 5
MAX_TEXT = 1_500
ROOM = 5 * 1024 * 1024
# The letters of cells, as report.js reads them.
PASSED, FAILED, ERRED, TRACKED, WARNED, OPEN, INACTIVE = ".FEiW- "
OMITTED = "left out of this page for its size"
_SCARCE = 0.35  # share of the room below which it is scarce
_ORDER = {FAILED: 0, ERRED: 1, WARNED: 2, TRACKED: 3, OPEN: 4}
_NOT_PASSED = (FAILED, ERRED, WARNED, TRACKED)


@dataclass
class _EntryTable:
    """Store each entry once, up to a limit of bytes."""

    limit: int
    entries: list[Any] = field(default_factory=list)
    indexes: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.room = self.limit

    @property
    def has_room(self) -> bool:
        return self.room > self.limit * _SCARCE

    def add(self, key: Any, build: Callable[[], Any]) -> int:
        """Return the index of the entry for a key, or -1 if there is no room for it."""
        if key not in self.indexes:
            entry = build() if self.room > 0 else None
            self.room -= measure_escaped_size(json.dumps(entry, ensure_ascii=False))
            self.indexes[key] = len(self.entries) if self.room >= 0 else -1
            self.entries += [entry] if self.room >= 0 else []
        return self.indexes[key]


def build_grid(
    state: RunState,
    entries: Sequence[EvaluationEntry],
    events: Iterable[Event],
    room: int = ROOM,
    limit: int = MAX_EVALUATIONS,
) -> dict[str, Any]:
    """Build the data of the last `limit` evaluations within `room` bytes."""
    first = max(0, len(entries) - limit)
    shown = entries[first:]
    results = [_list_results(entry.evaluation) for entry in shown]
    rules = {**state.criteria.by_id, **_build_unknown_rules(state, results)}
    findings, issues = _EntryTable(room), _EntryTable(room // 4)
    indexes: dict[str, list[int]] = {name: [] for name in rules}
    for by_rule in reversed(results):  # the latest evaluations get room first
        for name, result in by_rule.items():
            indexes[name].append(_add_findings(result, findings))
    rows = [_build_row(rule, shown, results, indexes[rule.id][::-1]) for rule in rules.values()]
    rows.sort(key=lambda row: _rank_urgency(row["cells"]))
    critiques = _list_critiques(events)
    return {
        "rounds": [
            {
                "label": format_label(entries, first + number),
                "iteration": entry.iteration,
                "phase": entry.evaluation.phase.value,
                "void": entry.evaluation.void,
                "issues": _index_issues(critiques.get((entry.iteration, entry.evaluation.phase.value)), issues),
            }
            for number, entry in enumerate(shown)
        ],
        "rules": rows,
        "says": findings.entries,
        "issues": issues.entries,
        "earlier": first,
    }


def _list_results(evaluation: Evaluation) -> dict[str, RuleResult]:
    """Return the results that did not pass, by rule id; other tools write only complaints: build results from these."""
    results = {result.id: result for result in evaluation.rule_results if result.verdict is not Verdict.PASS}
    for verdict, complaints in ((Verdict.FAIL, evaluation.failed), (Verdict.WARN, evaluation.warnings)):
        for complaint in complaints:
            result = RuleResult(id=complaint.id, verdict=verdict, details=complaint.message)
            results.setdefault(complaint.id, result)
    return results


def _build_unknown_rules(state: RunState, results: Iterable[dict[str, RuleResult]]) -> dict[str, RunRule]:
    names = dict.fromkeys(chain.from_iterable(results))
    return {name: RunRule(id=name, description=name) for name in names if name not in state.criteria.by_id}


def _build_row(
    rule: RunRule, entries: Sequence[EvaluationEntry], results: Sequence[dict[str, RuleResult]], indexes: Sequence[int]
) -> dict[str, Any]:
    pairs = zip(entries, results, strict=True)
    row = {
        "id": reveal_lines(rule.id),
        "severity": rule.severity.value,
        "weight": float(rule.weight),
        "phase": rule.phase.value,
        "cells": "".join(_choose_cell(rule, entry.evaluation, by_rule.get(rule.id)) for entry, by_rule in pairs),
        "says": [number for index, group in groupby(indexes) for number in (index, len(list(group)))],
    }
    return row | ({"description": _clean(rule.description)} if rule.description != rule.id else {})


def _choose_cell(rule: RunRule, evaluation: Evaluation, result: RuleResult | None) -> str:
    if result is None:
        return PASSED if evaluation.phase.includes(rule.phase) else INACTIVE
    if result.verdict is Verdict.FAIL:
        return FAILED if rule.is_blocking else TRACKED if rule.severity is Severity.INFO else WARNED
    return {Verdict.NA: OPEN, Verdict.ERROR: ERRED}.get(result.verdict, WARNED)


def _rank_urgency(cells: str) -> tuple[int, int, int]:
    """Return a sort key: rules that fail now first, then the most recently failed, then those that always passed."""
    if not cells:
        return (9, 0, 0)
    now = _ORDER.get(cells[-1], 9)
    return (now, -max(map(cells.rfind, _NOT_PASSED)), -sum(map(cells.count, _NOT_PASSED)))


def _add_findings(result: RuleResult, table: _EntryTable) -> int:
    findings = result.findings[:MAX_FINDINGS] or (Finding(expected="", found=result.details),)
    more = max(0, len(result.findings) - len(findings)) + result.more
    return table.add(
        (findings, more), lambda: [[_build_finding(finding, table.has_room) for finding in findings], more]
    )


def _build_finding(finding: Finding, has_room: bool) -> list[str]:
    """Build the texts of a finding; omit its details if there is no room."""
    detail = finding.detail if has_room or not finding.detail else OMITTED
    return [_clean(text) for text in (finding.expected, finding.found, finding.where, detail)]


def _clean(text: str) -> str:
    return reveal_lines(clip_text(text, MAX_TEXT))


def _list_critiques(events: Iterable[Event]) -> dict[tuple[int, str], Critique]:
    """Return the critiques by iteration and phase, without payloads in another tool's form."""
    return {
        (event.iteration, event.phase.value): event.payload
        for event in events
        if isinstance(event.payload, CritiqueDone)
    }


def _index_issues(critique: Critique | None, table: _EntryTable) -> dict[str, int]:
    """Return, for each rule, the index of the first issue that names it."""
    indexes: dict[str, int] = {}
    for issue in critique.issues if critique else ():
        index = table.add(issue, partial(_build_issue, issue))
        if index >= 0:
            indexes = {reveal_lines(name): index for name in (issue.rule_id, *issue.also)} | indexes
    return indexes


def _build_issue(issue: Issue) -> dict[str, Any]:
    return {
        "rule": reveal_lines(issue.rule_id),
        "problem": _clean(issue.problem),
        "fix": _clean(issue.fix_instruction),
        "effect": _clean(issue.expected_effect),
        "lines": _clean(issue.lines),
        "novelty": f"{issue.novelty.value}, {issue.times} times" if issue.times > 1 else issue.novelty.value,
    }
