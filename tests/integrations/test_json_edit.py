"""Entries of JSON files: set and removed without touching anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_loop.integrations.json_edit import BrokenConfigurationError, Entry, load_json, remove_entry, set_entry

SERVER = Entry(("mcpServers", "mine"), {"command": "sh"})
HOOK = Entry(("hooks", "Stop"), {"hooks": [{"command": "run --mine"}]}, mark="--mine")
TEXTS = [
    "",
    "{}",
    '{"z": 1, "a": [1, 2]}\n',
    '{\n\t"z": {"b": 1},\n\t"hooks": {"Start": []},\n\t"mcpServers": {"other": {}}\n}\n',
    '{\n    "hooks": {\n        "Stop": [\n            {"hooks": [{"command": "other"}]}\n        ]\n    },\n    "a": 1\n}\n',
    '{"hooks": {"Stop": []}, "mcpServers": {}}',
]


@pytest.mark.parametrize("entry", [SERVER, HOOK], ids=["object", "list"])
@pytest.mark.parametrize("text", TEXTS)
def test_entry_is_added_once_and_removed_again(text: str, entry: Entry) -> None:
    after = set_entry(text, entry, "x.json")
    assert set_entry(after, entry, "x.json") == after
    value = json.loads(after)
    for key in entry.keys:
        value = value[key]
    assert value == entry.value if not entry.mark else entry.value in value
    before = json.loads(text or "{}")
    kept = json.loads(remove_entry(after, entry, "x.json") or "{}")
    assert drop_empty(kept) == drop_empty(before)


def drop_empty(value: Any) -> Any:
    """Drop empty containers: one that became empty is removed, whoever made it."""
    if not isinstance(value, dict):
        return value
    members = {key: drop_empty(member) for key, member in value.items()}
    return {key: member for key, member in members.items() if member not in ({}, [])}


@pytest.mark.parametrize("entry", [SERVER, HOOK], ids=["object", "list"])
def test_other_text_stays_as_it_is(entry: Entry) -> None:
    text = '{\n   "z": [1,   2],\n   "é": "\\u00e9",\n   "last": {"b":1}\n}\n'
    after = set_entry(text, entry, "x.json")
    assert after.startswith(text.removesuffix("\n}\n"))
    assert remove_entry(after, entry, "x.json") == text


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {"Stop": [{"command": "other"}]}, "mcpServers": {"other": {}}}',
        '{\n  "hooks": {"Stop": [{"command": "other"},],},\n  "mcpServers": {"other": {}}\n}\n',
        '{"hooks": {"Stop": ["other" // first\n]}, "mcpServers": {"other": {} // first\n}}',
    ],
)
def test_removed_entry_leaves_no_line_behind(text: str) -> None:
    for entry in (SERVER, HOOK):
        assert remove_entry(set_entry(text, entry, "x.json"), entry, "x.json") == text


def test_outdated_entry_is_replaced() -> None:
    text = set_entry(set_entry("", SERVER, "x"), HOOK, "x")
    newer = Entry(HOOK.keys, {"hooks": [{"command": "better --mine"}]}, HOOK.mark)
    after = set_entry(set_entry(text, newer, "x"), Entry(SERVER.keys, {"command": "zsh"}), "x")
    assert json.loads(after) == {"mcpServers": {"mine": {"command": "zsh"}}, "hooks": {"Stop": [newer.value]}}


def test_what_is_not_there_is_not_removed() -> None:
    for text in ("{}", '{"hooks": {"Stop": [{"command": "other"}]}}', '{"hooks": 3}'):
        assert remove_entry(text, HOOK, "x") == text
    assert remove_entry("", HOOK, "x") == ""
    assert remove_entry('{"hooks": {"Stop": 3}}', HOOK, "x") == '{"hooks": {"Stop": 3}}'


def test_first_item_of_several_is_removed() -> None:
    text = set_entry('{"hooks": {"Stop": []}}', HOOK, "x")
    other = Entry(HOOK.keys, {"command": "other"}, "other")
    assert json.loads(remove_entry(set_entry(text, other, "x"), HOOK, "x")) == {"hooks": {"Stop": [other.value]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "a": 1 1\n}', "x.json:2: expected JSON, found"),
        ('{\n  # mine\n  "a": 1\n}', "x.json:2: expected JSON, found"),
        ('{"hooks": []}', "x.json:1: expected an object at hooks"),
        ('{"hooks": {\n"Stop": {}}}', "x.json:2: expected a list at hooks.Stop"),
        ("[]", "x.json:1: expected an object at the top"),
    ],
)
def test_broken_configuration_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(BrokenConfigurationError) as error:
        set_entry(text, HOOK, "x.json")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("entry", [SERVER, HOOK], ids=["object", "list"])
@pytest.mark.parametrize(
    "text",
    [
        '{\n  // first\n  "a": "// no comment, }", // of a\n  /* many\n     lines */\n  "b": [1, 2,], // of b\n}\n',
        '{\n  "a": 1 // of a\n  // the end, really\n}\n',
        '{\r\n  "a": 1, // of a\r\n  "b": {"c": "\\"//"} /* of b */\r\n}\r\n',
        '{"a": 1, /* of a */}',
    ],
)
def test_comments_and_last_commas_stay_where_they_are(text: str, entry: Entry) -> None:
    after = set_entry(text, entry, "x.json")
    assert set_entry(after, entry, "x.json") == after
    assert load_json(after)[entry.keys[0]]
    assert remove_entry(after, entry, "x.json").replace("\n", "") == text.replace("\n", "")


def test_new_entry_follows_the_comment_of_the_last_one() -> None:
    after = set_entry('{\n  "a": 1 // of a\n}\n', Entry(("b",), 2), "x.json")
    assert after == '{\n  "a": 1, // of a\n  "b": 2\n}\n'
    after = set_entry('{\n  "a": 1, // of a\n}\n', Entry(("b",), 2), "x.json")
    assert after == '{\n  "a": 1, // of a\n  "b": 2,\n}\n'


def test_comments_of_an_object_that_becomes_empty_stay() -> None:
    after = set_entry("{\n  // mine\n}\n", SERVER, "x.json")
    assert load_json(after) == {"mcpServers": {"mine": SERVER.value}}
    assert load_json(remove_entry("{ // mine\n" + after.lstrip("{"), SERVER, "x.json")) == {}
