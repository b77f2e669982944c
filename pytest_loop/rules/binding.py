"""Which items judge which rules: the items of rule files, and Python tests bound by a mark or by a `tests` check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.rules import DEFAULT_THRESHOLDS, TESTS_SOURCE, Criteria, Phase, Plan, Rule, Severity
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.checks.python_checks import Python, Tests, is_node_id
from pytest_loop.rules.checks.registry import list_checks
from pytest_loop.rules.checks.review_checks import Sentence
from pytest_loop.rules.items import LOADED, TALLY, FixtureRuleItem, RuleItem
from pytest_loop.rules.mark_expressions import MarkExpression
from pytest_loop.rules.rule_files import LoadedRule, LoadedRuleFile, build_rule

_FIELDS = ("severity", "weight", "phase", "description", "holdout")


class Binding:
    """The rules of a session by their keys (`source::id`), and the keys that each item judges.

    In a run all tests are rules: one without a mark blocks, and its id is its node id.
    """

    def __init__(self, session: pytest.Session, *, all_tests: bool = False) -> None:
        loaded = session.stash.get(LOADED, [])
        self.rules: dict[str, Rule] = {}
        self.items: dict[str, tuple[str, ...]] = {}
        self.problems: dict[str, str] = {}
        self._by_id: dict[str, list[str]] = {}
        for one in loaded:
            for each_rule in one.criteria.rules:
                self._add(one.criteria.source, each_rule)
        self._marked: dict[str, dict[str, Any]] = {}
        python = [item for item in session.items if not isinstance(item, (RuleItem, FixtureRuleItem))]
        for item in python:
            self._bind_marks(item)
            if all_tests and item.nodeid not in self.items:
                self._bind(item, self._keys({"id": item.nodeid, "description": item.nodeid}))
        marked = tuple(self.rules[f"{TESTS_SOURCE}::{name}"] for name in self._marked)
        self._bind_selected(loaded, session.items, python)
        self._bind_rules(session)
        own = (
            [Criteria(name=TESTS_SOURCE, source=TESTS_SOURCE, thresholds=DEFAULT_THRESHOLDS, rules=marked)]
            if marked
            else []
        )
        sentences = {
            key: judged.check.sentence for key, judged in _judged(loaded) if isinstance(judged.check, Sentence)
        }
        self.plan = Plan(
            criteria=(*(one.criteria for one in loaded), *own),
            items=self.items,
            sentences=sentences,
            judges=tuple(sorted(_judges(loaded, session.config.rootpath))),
        )

    def rules_of(self, nodeid: str) -> list[Rule]:
        """The rules that an item judges."""
        return [self.rules[key] for key in self.items.get(nodeid, ())]

    def _add(self, source: str, each_rule: Rule) -> str:
        key = f"{source}::{each_rule.id}"
        self.rules[key] = each_rule
        self._by_id.setdefault(each_rule.id, []).append(key)
        return key

    def _bind(self, item: pytest.Item, keys: Iterable[str]) -> None:
        known = self.items.get(item.nodeid, ())
        self.items[item.nodeid] = (*known, *(key for key in keys if key not in known))

    def _bind_marks(self, item: pytest.Item) -> None:
        for mark in item.iter_markers("loop_rule"):
            problem, fields = _fields(mark)
            if problem is None and (problem := self._conflict(fields)) is None:
                self._bind(item, self._keys(fields))
            else:
                self.problems[item.nodeid] = f"loop_rule: {problem}"

    def _keys(self, fields: dict[str, Any]) -> list[str]:
        """The rules with this id in rule files, whose fields win; else one of the criteria `tests`."""
        if fields["id"] not in self._by_id or fields["id"] in self._marked:
            self._marked[fields["id"]] = {**fields, **self._marked.get(fields["id"], {})}
            return [self._replace(build_rule(self._marked[fields["id"]]))]
        return self._by_id[fields["id"]]

    def _replace(self, each_rule: Rule) -> str:
        key = f"{TESTS_SOURCE}::{each_rule.id}"
        if key not in self.rules:
            return self._add(TESTS_SOURCE, each_rule)
        self.rules[key] = each_rule
        return key

    def _conflict(self, fields: dict[str, Any]) -> str | None:
        known = self._marked.get(fields["id"], {})
        for name, value in fields.items():
            if known.get(name, value) != value:
                expected = f"{name}={format_value(known[name])} as in another test of {fields['id']!r}"
                return f"expected {expected}, found {format_value(value)}"
        return None

    def _bind_selected(self, loaded: list[LoadedRuleFile], items: list[pytest.Item], python: list[pytest.Item]) -> None:
        own = {item.key: item for item in items if isinstance(item, (RuleItem, FixtureRuleItem))}
        for key, selector, folder in _selectors(loaded):
            found = [item for item in python if _selects(selector, folder, item)]
            for item in found:
                self._bind(item, [key])
            if not found and key in own:
                own[key].unbound += (selector,)

    def _bind_rules(self, session: pytest.Session) -> None:
        for item in session.items:
            if isinstance(item, (RuleItem, FixtureRuleItem)):
                self.items[item.nodeid] = (item.key,)
                if item.judged.rule.repeat > 1:
                    session.stash[TALLY].expect(item.key)


def _judges(loaded: list[LoadedRuleFile], root: Path) -> set[str]:
    """The files of the project whose functions are checks."""
    parts = (
        (judged.folder, part) for _, judged in _judged(loaded) if judged.is_slow for part in list_checks(judged.check)
    )
    files = {part.file(folder, root) for folder, part in parts if isinstance(part, Python)}
    return {path.relative_to(root).as_posix() for path in files if path and path.is_relative_to(root)}


def _judged(loaded: list[LoadedRuleFile]) -> Iterator[tuple[str, LoadedRule]]:
    for one in loaded:
        for judged in one.rules:
            yield f"{one.criteria.source}::{judged.rule.id}", judged


def _selectors(loaded: list[LoadedRuleFile]) -> Iterator[tuple[str, str, Path]]:
    """The rule, what it selects, and the folder that its paths start from."""
    for key, judged in _judged(loaded):
        for check in list_checks(judged.check):
            if isinstance(check, Tests):
                yield from ((key, text, judged.folder) for text in check.tests)


def _selects(selector: str, folder: Path, item: pytest.Item) -> bool:
    """Node ids start at the folder of the rule file, like all its paths, or are written as pytest prints them."""
    if not is_node_id(selector):
        return MarkExpression(selector).matches(item.iter_markers())
    path, _, name = selector.rstrip("/").partition("::")
    here = item.path.is_relative_to((folder / path).resolve())
    inside = item.nodeid.partition("::")[2]
    return (here and (not name or _below(inside, name))) or _below(item.nodeid, selector.rstrip("/"))


def _below(nodeid: str, selector: str) -> bool:
    rest = nodeid.removeprefix(selector)
    return rest != nodeid and (not rest or rest.startswith(("::", "[", "/")))


def _fields(mark: pytest.Mark) -> tuple[str | None, dict[str, Any]]:
    """The fields that a mark gives a rule, or what is wrong with it."""
    if len(mark.args) != 1 or not isinstance(mark.args[0], str) or not mark.args[0]:
        return f"expected one id such as 'a.correctness.totals', found {format_value(mark.args)}", {}
    fields = {name: value for name, value in mark.kwargs.items() if value is not None}
    for name, value in fields.items():
        if name not in _FIELDS:
            return f"expected one of {', '.join(_FIELDS)}, found {name!r}", {}
        if expected := _unusable(name, value):
            return f"expected {expected} for {name}, found {format_value(value)}", {}
    return None, {"id": mark.args[0], **fields}


def _unusable(name: str, value: Any) -> str | None:
    if name == "severity" and value not in [one.value for one in Severity]:
        return "'fail', 'warn' or 'info'"
    if name == "phase" and value not in [one.value for one in Phase]:
        return "'A' or 'B'"
    if name == "weight" and (
        isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf")
    ):
        return "a finite number >= 0"
    if name == "description" and not isinstance(value, str):
        return "text"
    if name == "holdout" and not isinstance(value, bool):
        return "True or False"
    return None
