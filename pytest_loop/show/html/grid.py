"""The grid of rules and evaluations as the page reads it: small, with every text in it once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import CritiqueDone
from pytest_loop.core.model.evaluation import Assessment, Critique, Issue, RuleResult
from pytest_loop.core.model.rules import Finding, Severity, Verdict
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import clip_text
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.show.html.chart import label
from pytest_loop.show.summary import Round

MOST_ROUNDS = 200
MOST_FINDINGS = 5
LONGEST_TEXT = 1_500
ROOM = 5 * 1024 * 1024
PASSED, FAILED, TRACKED, WARNED, OPEN, INACTIVE = ".FiW- "
LEFT_OUT = "left out of this page for its size"
_SHORT = 0.35  # where so much of the room is left, it is short
_ORDER = {FAILED: 0, WARNED: 1, TRACKED: 2, OPEN: 3}


def plain(text: str) -> str:
    """A text of several lines in which nothing hides."""
    return "\n".join(map(reveal_hidden, text.split("\n")))


def escaped_size(text: str) -> int:
    """How many bytes a text takes on the page, where some characters are written as six."""
    return len(text.encode("utf-8", "replace")) + 5 * sum(map(text.count, "<>&'"))


@dataclass
class _Pool:
    """Texts and what is made of them, each once, as far as there is room."""

    whole: int
    entries: list[Any] = field(default_factory=list)
    known: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.room = self.whole

    @property
    def is_roomy(self) -> bool:
        return self.room > self.whole * _SHORT

    def place(self, key: Any, entry: Callable[[], Any]) -> int:
        """The number of what is made for a key; -1 where there is no room for it any more."""
        if key not in self.known:
            made = entry() if self.room > 0 else None
            self.room -= escaped_size(json.dumps(made, ensure_ascii=False))
            self.known[key] = len(self.entries) if self.room >= 0 else -1
            self.entries += [made] if self.room >= 0 else []
        return self.known[key]


def grid(
    state: RunState, told: Sequence[Round], events: Iterable[Event], room: int = ROOM, most: int = MOST_ROUNDS
) -> dict[str, Any]:
    """What the page needs to draw the grid, and to tell what stands behind each cell.

    `room` is how many bytes there may be of that, `most` how many evaluations.
    """
    shown = range(max(0, len(told) - most), len(told))
    results = [_results(told[at].found) for at in shown]
    rules = {**state.criteria.by_id, **_unknown(state, results)}
    says, issues = _Pool(room), _Pool(room // 4)
    places: dict[str, list[int]] = {name: [] for name in rules}
    for found in reversed(results):  # where there is no room for all, the last ones are told
        for name, one in found.items():
            places[name].append(_place(one, says))
    rows = [_row(rule, [told[at] for at in shown], results, places[rule.id][::-1]) for rule in rules.values()]
    rows.sort(key=lambda row: _urgency(row["cells"]))
    critiques = _critiques(events)
    return {
        "rounds": [
            {
                "label": label(told, at),
                "iteration": told[at].iteration,
                "phase": told[at].found.phase.value,
                "void": told[at].found.void,
                "issues": _issues(critiques.get((told[at].iteration, told[at].found.phase.value)), issues),
            }
            for at in shown
        ],
        "rules": rows,
        "says": says.entries,
        "issues": issues.entries,
        "earlier": shown.start,
    }


def _results(one: Assessment) -> dict[str, RuleResult]:
    """What did not pass; tools that note complaints alone are understood too."""
    found = {result.id: result for result in one.rule_results if result.verdict is not Verdict.PASS}
    for verdict, complaints in ((Verdict.FAIL, one.failed), (Verdict.WARN, one.warnings)):
        for each in complaints:
            found.setdefault(each.id, RuleResult(id=each.id, verdict=verdict, details=each.message))
    return found


def _unknown(state: RunState, results: Iterable[dict[str, RuleResult]]) -> dict[str, RunRule]:
    names = dict.fromkeys(chain.from_iterable(results))
    return {name: RunRule(id=name, description=name) for name in names if name not in state.criteria.by_id}


def _row(
    rule: RunRule, told: Sequence[Round], results: Sequence[dict[str, RuleResult]], places: Sequence[int]
) -> dict[str, Any]:
    cells = "".join(_cell(rule, one, found) for one, found in zip(told, results, strict=True))
    row = {
        "id": plain(rule.id),
        "severity": rule.severity.value,
        "weight": float(rule.weight),
        "phase": rule.phase.value,
        "cells": cells,
        "says": list(_runs(places)),
    }
    return row | ({"description": _text(rule.description)} if rule.description != rule.id else {})


def _cell(rule: RunRule, one: Round, found: dict[str, RuleResult]) -> str:
    if rule.id not in found:
        return PASSED if one.found.phase.includes(rule.phase) else INACTIVE
    verdict = found[rule.id].verdict
    if verdict is Verdict.FAIL:
        return FAILED if rule.is_blocking else TRACKED if rule.severity is Severity.INFO else WARNED
    return OPEN if verdict is Verdict.NA else WARNED


def _runs(places: Iterable[int]) -> Iterator[int]:
    """The same number again and again as the number and how often: most rules fail in the same way for a while."""
    last, times = None, 0
    for place in places:
        if place != last and last is not None:
            yield from (last, times)
            times = 0
        last, times = place, times + 1
    if last is not None:
        yield from (last, times)


def _urgency(cells: str) -> tuple[int, int, int]:
    """What fails now comes first, then what failed last, then what always passed."""
    if not cells:
        return (9, 0, 0)
    now = _ORDER.get(cells[-1], 9)
    last = max(map(cells.rfind, (FAILED, WARNED, TRACKED)))
    return (now, -last, -sum(map(cells.count, (FAILED, WARNED, TRACKED))))


def _place(one: RuleResult, says: _Pool) -> int:
    kept = one.findings[:MOST_FINDINGS] or (Finding(expected="", found=one.details),)
    more = max(0, len(one.findings) - len(kept)) + one.more
    return says.place((kept, more), lambda: [[_finding(finding, has_room=says.is_roomy) for finding in kept], more])


def _finding(one: Finding, *, has_room: bool) -> list[str]:
    """What is said, and the lines that explain it: where room is short, these go first."""
    lines = one.detail if has_room or not one.detail else LEFT_OUT
    return [_text(text) for text in (one.expected, one.found, one.where, lines)]


def _text(text: str) -> str:
    return plain(clip_text(text, LONGEST_TEXT))


def _critiques(events: Iterable[Event]) -> dict[tuple[int, str], Critique]:
    """Return the critique of each evaluation; those in the form of another tool are left out."""
    return {
        (event.iteration, event.phase.value): event.payload
        for event in events
        if isinstance(event.payload, CritiqueDone)
    }


def _issues(critique: Critique | None, issues: _Pool) -> dict[str, int]:
    """Which issue of the critique speaks of which rule."""
    named: dict[str, int] = {}
    for one in critique.issues if critique else ():
        place = issues.place(one, partial(_issue, one))
        if place >= 0:
            named = {plain(name): place for name in (one.rule_id, *one.also)} | named
    return named


def _issue(one: Issue) -> dict[str, Any]:
    return {
        "rule": plain(one.rule_id),
        "problem": _text(one.problem),
        "fix": _text(one.fix_instruction),
        "effect": _text(one.expected_effect),
        "lines": _text(one.lines),
        "novelty": f"{one.novelty.value}, {one.times} times" if one.times > 1 else one.novelty.value,
    }
