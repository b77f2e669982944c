from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_loop.errors import RuleFileError
from pytest_loop.rules import rule_files, sources
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS
from pytest_loop.rules.parse_cache import MEANINGS, MOST, Meanings
from pytest_loop.rules.rule_files import load_rule_file

RULES = """
    artifact: guide.md
    rules:
      - {id: a.one, description: one, check: {matches: "^# "}}
      - {id: a.two, description: two, check: {contains: x}}
"""


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meanings]:
    made = Meanings(is_kept=True)
    for module in (rule_files, sources):
        monkeypatch.setattr(module, "MEANINGS", made)
    yield made
    assert not MEANINGS.is_kept


def test_a_text_that_is_known_is_not_read_again(
    kept: Meanings, rule_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rule_file(RULES)
    first = load_rule_file(path, path.parent)
    monkeypatch.setattr(sources, "parse_with_nodes", None)
    again = load_rule_file(path, path.parent)
    assert [one.check for one in again.rules] == [one.check for one in first.rules]
    assert all(one.check is other.check for one, other in zip(first.rules, again.rules, strict=True))
    assert [one.line for one in again.rules] == [one.line for one in first.rules] == [3, 4]
    assert kept.read == {path: path.parent}


def test_another_text_is_read(kept: Meanings, rule_file: Callable[..., Path]) -> None:
    path = rule_file(RULES)
    load_rule_file(path, path.parent)
    rule_file(RULES.replace("contains: x", "contains: y"))
    assert load_rule_file(path, path.parent).rules[1].check.contains == ["y"]


def test_a_file_without_lines_is_kept_too(kept: Meanings, rule_file: Callable[..., Path]) -> None:
    rules = [{"id": "a.one", "description": "one", "check": {"contains": "x"}}]
    path = rule_file(json.dumps({"artifact": "guide.md", "rules": rules}), "it.rules.json")
    assert load_rule_file(path, path.parent).rules[0].line == load_rule_file(path, path.parent).rules[0].line


def test_a_file_that_is_bad_is_bad_every_time(kept: Meanings, rule_file: Callable[..., Path]) -> None:
    path = rule_file(RULES.replace("a.two", "a.one"))
    complaints = []
    for _ in range(2):
        with pytest.raises(RuleFileError) as caught:
            load_rule_file(path, path.parent)
        complaints.append(str(caught.value))
    assert complaints[0] == complaints[1]


def test_checks_of_others_are_made_anew(kept: Meanings, rule_file: Callable[..., Path]) -> None:
    path = rule_file(RULES)
    kinds = dict(BUILT_IN_KINDS)
    first, second = (load_rule_file(path, path.parent, kinds).rules[0].check for _ in range(2))
    assert first == second
    assert first is not second


def test_texts_that_change_all_the_time_do_not_pile_up(kept: Meanings, rule_file: Callable[..., Path]) -> None:
    for number in range(MOST + 3):
        path = rule_file(RULES.replace("contains: x", f"contains: x{number}"))
        assert load_rule_file(path, path.parent).rules[1].check.contains == [f"x{number}"]
    assert len(kept._files) == 3
    assert len(kept._rules) == 3
