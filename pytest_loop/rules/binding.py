"""Bind items to rules: the items of rule files, and tests with a mark or selected by a `tests` check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.rules import (
    DEFAULT_THRESHOLDS,
    TESTS_SOURCE,
    Criteria,
    Phase,
    Rule,
    SessionPlan,
    Severity,
    infer_phase,
)
from pytest_loop.rules.checks.check import find_obstacle, format_value
from pytest_loop.rules.checks.data_checks import JsonSchema
from pytest_loop.rules.checks.python_checks import Python, Tests, is_node_id
from pytest_loop.rules.checks.registry import can_read_artifact, list_checks
from pytest_loop.rules.document import format_path
from pytest_loop.rules.items import LOADED_FILES, VOTES, FixtureRuleItem, RuleItem
from pytest_loop.rules.mark_expressions import MarkExpression
from pytest_loop.rules.rule_files import LoadedRule, LoadedRuleFile, build_rule

_MARK_FIELDS = ("severity", "weight", "phase", "description", "holdout")


class Binding:
    """Map each item of a session to the rules that its outcome decides.

    `rules` has the rules by key (`source::id`), `items` the keys of rules by node id, and `problems` the errors of
    marks by node id. With `binds_all_tests`, as in a run, a test without a mark is a blocking rule with its node id.
    """

    def __init__(self, session: pytest.Session, *, binds_all_tests: bool = False) -> None:
        files = session.stash.get(LOADED_FILES, [])
        self.rules: dict[str, Rule] = {}
        self.items: dict[str, tuple[str, ...]] = {}
        self.problems: dict[str, str] = {}
        self._keys_by_id: dict[str, list[str]] = {}
        self._mark_fields: dict[str, dict[str, Any]] = {}
        for file in files:
            for rule in file.criteria.rules:
                self._add_rule(file.criteria.source, rule)
        tests = [item for item in session.items if not isinstance(item, (RuleItem, FixtureRuleItem))]
        self.has_tests = bool(tests)
        for item in tests:
            self._bind_marks(item)
            if binds_all_tests and item.nodeid not in self.items:
                self._bind(item, self._find_or_add_keys({"id": item.nodeid, "description": item.nodeid}))
        marked_rules = tuple(self.rules[f"{TESTS_SOURCE}::{rule_id}"] for rule_id in self._mark_fields)
        self._bind_selected_tests(files, session.items, tests)
        self._bind_rule_items(session)
        criteria = [file.criteria for file in files]
        if marked_rules:
            criteria.append(
                Criteria(name=TESTS_SOURCE, source=TESTS_SOURCE, thresholds=DEFAULT_THRESHOLDS, rules=marked_rules)
            )
        self.plan = SessionPlan(
            criteria=tuple(criteria),
            items=self.items,
            checks={key: loaded.raw for key, loaded in _iterate_rules(files)},
            judges=_list_judging_files(files, session.config.rootpath),
            command_files=_list_command_files(files, session.config.rootpath),
            obstacles=dict(_find_obstacles(session)) if session.config.option.collectonly else {},
            documents={
                file.criteria.source: _describe_document(file, session.config.rootpath)
                for file in files
                if file.declared_artifact or any(can_read_artifact(loaded.check) for loaded in file.rules)
            },
            doctest_sources=_find_doctest_sources(tests),
        )

    def _add_rule(self, source: str, rule: Rule) -> str:
        key = f"{source}::{rule.id}"
        if key not in self.rules:
            self._keys_by_id.setdefault(rule.id, []).append(key)
        self.rules[key] = rule
        return key

    def _bind(self, item: pytest.Item, keys: Iterable[str]) -> None:
        bound = self.items.get(item.nodeid, ())
        self.items[item.nodeid] = (*bound, *(key for key in keys if key not in bound))

    def _bind_marks(self, item: pytest.Item) -> None:
        for mark in item.iter_markers("loop_rule"):
            problem, fields = _read_mark(mark)
            if problem is None and (problem := self._find_conflict(fields)) is None:
                self._bind(item, self._find_or_add_keys(fields))
            else:
                self.problems[item.nodeid] = f"loop_rule: {problem}"

    def _find_or_add_keys(self, fields: dict[str, Any]) -> list[str]:
        """Return the keys of all rules with this id in rule files; without any, add one to the criteria `tests`."""
        rule_id = fields["id"]
        if rule_id in self._keys_by_id and rule_id not in self._mark_fields:
            return self._keys_by_id[rule_id]
        self._mark_fields[rule_id] = {**fields, **self._mark_fields.get(rule_id, {})}
        return [self._add_rule(TESTS_SOURCE, build_rule(self._mark_fields[rule_id]))]

    def _find_conflict(self, fields: dict[str, Any]) -> str | None:
        """Return a message about the first field that differs from an earlier mark with the same id, or None."""
        earlier = self._mark_fields.get(fields["id"], {})
        for name, value in fields.items():
            if earlier.get(name, value) != value:
                before, after = format_value(earlier[name]), format_value(value)
                return f"expected {name}={before} as in another test of {fields['id']!r}, found {after}"
        return None

    def _bind_selected_tests(
        self, files: list[LoadedRuleFile], items: list[pytest.Item], tests: list[pytest.Item]
    ) -> None:
        rule_items = {item.key: item for item in items if isinstance(item, (RuleItem, FixtureRuleItem))}
        for key, selector, folder in _iterate_selectors(files):
            selected = [item for item in tests if _is_selected(selector, folder, item)]
            for item in selected:
                self._bind(item, [key])
            if not selected and key in rule_items:
                rule_items[key].unbound_selectors += (selector,)

    def _bind_rule_items(self, session: pytest.Session) -> None:
        for item in session.items:
            if isinstance(item, (RuleItem, FixtureRuleItem)):
                self.items[item.nodeid] = (item.key,)
                if item.loaded.rule.repeat > 1:
                    session.stash[VOTES].expect(item.key)


def find_phase(item: pytest.Item) -> str:
    """Return the phase that an item's mark names, or infer it from the rule's id; return "" without a mark."""
    mark = item.get_closest_marker("loop_rule")
    if mark is None:
        return ""
    return str(mark.kwargs.get("phase") or infer_phase(str(mark.args[0]) if mark.args else "").value)


def _list_judging_files(files: list[LoadedRuleFile], root: Path) -> tuple[str, ...]:
    """Return the project files that decide verdicts: functions and schemas of checks, and extended rule files."""
    paths: set[Path | None] = {path for file in files for path in file.extended_files}
    for _, loaded in _iterate_rules(files):
        for check in list_checks(loaded.check):
            if isinstance(check, (Python, JsonSchema)):
                paths.add(check.find_file(loaded.folder, root))
    return _list_project_paths(paths, root)


def _list_command_files(files: list[LoadedRuleFile], root: Path) -> tuple[str, ...]:
    """Return the files of the project that commands of rules name."""
    slow = [loaded for _, loaded in _iterate_rules(files) if loaded.is_slow]
    commands = {
        (loaded.folder, str(getattr(check, "command_line", "")))
        for loaded in slow
        for check in list_checks(loaded.check)
    }
    paths = {folder / word for folder, command in commands for word in re.sub("['\"]", " ", command).split()}
    return _list_project_paths({path for path in paths if path.is_file()}, root)


def _list_project_paths(paths: Iterable[Path | None], root: Path) -> tuple[str, ...]:
    """Return the paths inside the project, sorted and relative to its root."""
    resolved = {path.resolve() for path in paths if path}
    top = root.resolve()
    return tuple(sorted(path.relative_to(top).as_posix() for path in resolved if path.is_relative_to(top)))


def _find_obstacles(session: pytest.Session) -> Iterator[tuple[str, str]]:
    """Yield the key of each rule whose check cannot be carried out here, and the reason."""
    for item in session.items:
        if isinstance(item, (RuleItem, FixtureRuleItem)) and (
            obstacle := find_obstacle(item.loaded.check, item.context)
        ):
            yield item.key, obstacle


def _describe_document(file: LoadedRuleFile, root: Path) -> str:
    """Return the path of the artifact that a rule file names, relative to the root if inside it; "" without one."""
    return format_path(file.declared_artifact, root) if file.declared_artifact else ""


def _iterate_rules(files: list[LoadedRuleFile]) -> Iterator[tuple[str, LoadedRule]]:
    for file in files:
        for loaded in file.rules:
            yield f"{file.criteria.source}::{loaded.rule.id}", loaded


def _iterate_selectors(files: list[LoadedRuleFile]) -> Iterator[tuple[str, str, Path]]:
    """Yield (rule key, selector, folder) for each selector of a `tests` check; its path starts from the folder."""
    for key, loaded in _iterate_rules(files):
        for check in list_checks(loaded.check):
            if isinstance(check, Tests):
                yield from ((key, selector, loaded.folder) for selector in check.tests)


def _is_selected(selector: str, folder: Path, item: pytest.Item) -> bool:
    """Return whether a selector names an item: by marks, by a path from the rule file's folder, or by node id."""
    if not is_node_id(selector):
        return MarkExpression(selector).matches(item.iter_markers())
    path, _, name = selector.rstrip("/").partition("::")
    is_below = item.path.is_relative_to((folder / path).resolve())
    has_name = not name or _is_selected_node(item.nodeid.partition("::")[2], name)
    return (is_below and has_name) or _is_selected_node(item.nodeid, selector.rstrip("/"))


def _is_selected_node(nodeid: str, selector: str) -> bool:
    """Return whether a node id equals a selector or is below it."""
    rest = nodeid.removeprefix(selector)
    return rest != nodeid and (not rest or rest.startswith(("::", "[", "/")))


def _read_mark(mark: pytest.Mark) -> tuple[str | None, dict[str, Any]]:
    """Return (None, fields of the rule) for a valid mark, and (problem, empty fields) for an invalid one."""
    if len(mark.args) != 1 or not isinstance(mark.args[0], str) or not mark.args[0]:
        return f"expected one id such as 'a.correctness.totals', found {format_value(mark.args)}", {}
    fields = {name: value for name, value in mark.kwargs.items() if value is not None}
    for name, value in fields.items():
        if name not in _MARK_FIELDS:
            return f"expected one of {', '.join(_MARK_FIELDS)}, found {name!r}", {}
        if expected := _describe_expected_value(name, value):
            return f"expected {expected} for {name}, found {format_value(value)}", {}
    return None, {"id": mark.args[0], **fields}


def _describe_expected_value(name: str, value: Any) -> str | None:
    """Describe the values that a field of a mark accepts; return None if `value` is one of them."""
    if name == "severity" and value not in [severity.value for severity in Severity]:
        return "'fail', 'warn' or 'info'"
    if name == "phase" and value not in [phase.value for phase in Phase]:
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


def _find_doctest_sources(items: Iterable[pytest.Item]) -> tuple[str, ...]:
    """Return the Python files whose only tests are in docstrings."""
    has_only_doctests: dict[str, bool] = {}
    for item in items:
        path = item.nodeid.partition("::")[0]
        has_only_doctests[path] = isinstance(item, pytest.DoctestItem) and has_only_doctests.get(path, True)
    return tuple(path for path, has_only in has_only_doctests.items() if has_only and path.endswith(".py"))
