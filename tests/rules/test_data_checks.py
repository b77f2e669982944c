from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.errors import CheckError
from pytest_loop.rules import deadline
from pytest_loop.rules.checks import data_checks

Run = Callable[..., list[str]]

DATA = json.dumps(
    {
        "name": "courses",
        "count": 3,
        "big": 1.5,
        "flag": True,
        "tags": ["a", "b"],
        "nested": {"x/y": [{"id": 1}, {"id": "two"}]},
    }
)


@pytest.mark.parametrize(
    "ask",
    [
        {"path": "name", "op": "==", "value": "courses"},
        {"path": "name", "value": "courses"},
        {"path": "count", "op": "!=", "value": 4},
        {"path": "count", "op": ">=", "value": 3},
        {"path": "big", "op": ">", "value": 1},
        {"path": "count", "op": "<=", "value": 3},
        {"path": "count", "op": "<", "value": 4},
        {"path": "name", "op": "in", "value": ["courses", "x"]},
        {"path": "name", "op": "not in", "value": ["x"]},
        {"path": "tags", "op": "contains", "value": "a"},
        {"path": "name", "op": "contains", "value": "our"},
        {"path": "name", "op": "matches", "value": "^c.*s$"},
        {"path": "length(tags)", "value": 2},
        {"path": "nothing", "value": None},
    ],
)
def test_queries_pass_when_the_comparison_holds(run: Run, ask: dict[str, Any]) -> None:
    assert run({"query": ask}, DATA, "x.json") == []


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        ({"path": "name", "value": "x"}, "x.json: expected name == 'x', found 'courses'"),
        ({"path": "flag", "value": 1}, "x.json: expected flag == 1, found true"),
        ({"path": "flag", "op": ">=", "value": 1}, "x.json: expected flag >= 1, found true"),
        ({"path": "name", "op": ">=", "value": 1}, "x.json: expected name >= 1, found 'courses'"),
        ({"path": "nothing", "op": "contains", "value": "a"}, "x.json: expected nothing contains 'a', found null"),
        ({"path": "count", "op": "matches", "value": "3"}, "x.json: expected count matches '3', found 3"),
        ({"path": "name", "op": "contains", "value": 1}, "x.json: expected name contains 1, found 'courses'"),
        ({"path": "tags", "op": "contains", "value": "z"}, "x.json: expected tags contains 'z', found ['a', 'b']"),
    ],
)
def test_failing_queries_show_the_actual_value(run: Run, ask: dict[str, Any], line: str) -> None:
    assert run({"query": ask}, DATA, "x.json") == [line]


def test_data_is_parsed_once_for_all_checks(run: Run) -> None:
    ask = {"query": {"path": "count", "value": 3}}
    assert run([ask, ask], DATA, "x.json") == []


def test_data_that_a_query_cannot_be_asked_of_fails(run: Run) -> None:
    (line,) = run({"query": {"path": "length(count)", "value": 1}}, DATA, "x.json")
    assert line.startswith(
        "x.json: expected length(count) == 1, found data that it cannot be asked of: In function length()"
    )
    (line,) = run({"metric": {"command": "echo '{}'", "json": "length(a)", "value": 1}})
    assert line.startswith("expected a number >= 1 from `echo '{}'`, found data that it cannot be asked of")


def test_a_query_with_an_unknown_function_is_an_error(run: Run) -> None:
    with pytest.raises(CheckError, match="the query 'size\\(count\\)' cannot be answered: Unknown function"):
        run({"query": {"path": "size(count)", "value": 1}}, DATA, "x.json")


def test_a_query_on_a_format_without_data_is_an_error(run: Run) -> None:
    with pytest.raises(
        CheckError, match=r"cannot query doc.md: its format is markdown, expected one of json, yaml, toml"
    ):
        run({"query": {"path": "a", "value": 1}}, "a: 1")
    assert run({"query": {"path": "a", "value": 1}, "format": "yaml"}, "a: 1") == []


def test_a_malformed_block_is_reported_with_its_line_in_the_file(run: Run) -> None:
    text = "# T\n\n```json\n{\n  oops\n}\n```\n"
    lines = run({"query": {"path": "a", "value": 1}, "block": "json"}, text)
    assert lines == [
        "doc.md:5: expected JSON, found an error: expecting property name enclosed in double quotes in column 3"
    ]


def test_every_schema_violation_is_reported_with_its_json_pointer(run: Run) -> None:
    schema = {
        "type": "object",
        "required": ["title"],
        "properties": {"nested": {"properties": {"x/y": {"items": {"properties": {"id": {"type": "integer"}}}}}}},
    }
    lines = run({"json_schema": schema}, DATA, "x.json")
    assert len(lines) == 2
    assert lines[0] == "x.json: expected / to be valid, found 'title' is a required property"
    assert lines[1] == "x.json: expected /nested/x~1y/1/id to be valid, found 'two' is not of type 'integer'"


def test_numeric_keys_are_strings_as_in_json(run: Run) -> None:
    schema = {"patternProperties": {"^2": {"type": "object"}}}
    assert run({"json_schema": schema}, "200: {}\n404: x", "x.yaml") == []
    assert run({"query": {"path": '"200"', "value": {}}}, "200: {}", "x.yaml") == []


def test_the_number_of_reported_violations_is_limited(run: Run) -> None:
    lines = run({"json_schema": {"items": {"type": "string"}}}, json.dumps(list(range(50))), "x.json")
    assert len(lines) == 21
    assert lines[-1] == "x.json: expected the whole to be valid, found 30 more violations"


def test_a_schema_file_may_refer_to_other_files_of_the_project(run: Run, tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text("properties: {count: {$ref: number.json}}")
    (tmp_path / "number.json").write_text('{"maximum": 2}')
    lines = run({"json_schema": "schema.yaml"}, DATA, "x.json")
    assert lines == ["x.json: expected /count to be valid, found 3 is greater than the maximum of 2"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("none.json", "cannot read the schema none.json:1: expected a file, found none"),
        ("../x.json", "leads out of the project"),
        ({"type": 5}, "expected a JSON Schema, found one that is not: 5 is not valid"),
        (
            {"$ref": "https://example.com/schema.json"},
            "the schema refers to 'https://example.com/schema.json', which is not in the project",
        ),
        ({"$ref": "#/nowhere"}, "the schema refers to '/nowhere', which is not in the project"),
    ],
)
def test_an_unusable_schema_is_an_error(run: Run, schema: Any, message: str) -> None:
    with pytest.raises(CheckError) as caught:
        run({"json_schema": schema}, DATA, "x.json")
    assert message in str(caught.value)


def test_patterns_in_a_schema_have_a_deadline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_checks, "DEADLINE_SECONDS", 0.2)
    bomb = {"patternProperties": {"^(a+)+$": {"type": "string"}}}
    started = time.monotonic()
    with pytest.raises(deadline.DeadlineError, match=r"the validation did not end within 0\.2 s"):
        run({"json_schema": bomb}, json.dumps({"a" * 40 + "b": 1}), "x.json")
    assert time.monotonic() - started < 30
    lines = run(
        {"json_schema": {"properties": {"name": {"pattern": "^x"}, "count": {"pattern": "^x"}}}}, DATA, "x.json"
    )
    assert lines == ["x.json: expected /name to be valid, found 'courses' does not match '^x'"]
