from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, InvalidCheckError, build_check, needs_artifact

Run = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"command": "true"}, False),
        ({"command": "cat {artifact}"}, True),
        ({"metric": {"command": "wc {artifact}", "pattern": "x", "value": 1}}, True),
        ({"any": [{"manual": "x"}, {"not": {"contains": "x"}}]}, True),
        ("a sentence", False),
    ],
)
def test_checks_that_read_the_artifact_need_one(raw: object, expected: bool) -> None:
    assert needs_artifact(build_check(raw)) is expected


KINDS = ", ".join(sorted([*BUILT_IN_KINDS, "all", "any", "not"]))


@pytest.mark.parametrize(
    ("raw", "path", "text"),
    [
        (5, (), "expected a check (a mapping, a list or a sentence), found 5"),
        ("  ", (), "expected a check (a mapping, a list or a sentence), found '  '"),
        ([], (), "expected a check (a mapping, a list or a sentence), found []"),
        ({}, (), "expected a check (a mapping, a list or a sentence), found {}"),
        (
            {"contain": "x"},
            ("contain",),
            f"expected one kind of check ({KINDS}), found `contain`: did you mean `contains`?",
        ),
        (
            {"contains": "x", "absent": "y"},
            ("absent",),
            "expected one kind of check, found `contains` and `absent`: put them into `all`",
        ),
        ({"contains": 5}, ("contains",), "expected a list for `contains`, found 5"),
        ({"contains": [404]}, ("contains", 0), "expected text, found 404"),
        ({"contains": []}, ("contains",), "expected at least one entry for `contains`, found []"),
        (
            {"contains": "x", "ignorecase": True},
            ("ignorecase",),
            "expected `ignore_case`, found the unknown key `ignorecase`",
        ),
        (
            {"contains": "x", "zzz": 1},
            ("zzz",),
            "expected one of contains, ignore_case, max_matches, min_matches, section, found the unknown key `zzz`",
        ),
        ({"contains": "x", "min_matches": -1}, ("min_matches",), "expected a number >= 0 for `min_matches`, found -1"),
        (
            {"matches": "("},
            (),
            "expected a regular expression, found '(' (missing ), unterminated subpattern at position 0)",
        ),
        ({"matches": "a" * 10_001}, (), "expected a regular expression, found one of 10,001 characters"),
        (
            {"command": "x", "expect_output": "["},
            ("expect_output",),
            "expected a regular expression, found '[' (unterminated character set at position 0)",
        ),
        ({"command": ""}, ("command",), "expected a text that is not empty for `command`, found ''"),
        ({"command": " "}, (), "expected a command, found an empty text"),
        ({"command": "a && b"}, (), "expected a plain command, found the shell operator '&&': add `shell: true`"),
        ({"command": "cat < x"}, (), "expected a plain command, found the shell operator '<': add `shell: true`"),
        ({"command": "echo 'x"}, (), 'expected a command, found "echo \'x" (no closing quotation)'),
        ({"command": "true", "timeout": 0}, ("timeout",), "expected a number > 0 for `timeout`, found 0"),
        (
            {"command": "true", "timeout": float("nan")},
            ("timeout",),
            "expected a finite number for `timeout`, found nan",
        ),
        (
            {"command": "true", "expect_exit": "0"},
            ("expect_exit",),
            "expected a whole number for `expect_exit`, found '0'",
        ),
        ({"metric": {"command": "x", "value": 1}}, ("metric",), "expected either pattern or json, found none"),
        (
            {"metric": {"command": "x", "pattern": "a", "json": "b", "value": 1}},
            ("metric",),
            "expected either pattern or json, found both",
        ),
        ({"metric": {"command": "x", "pattern": "a"}}, ("metric", "value"), "expected the key `value`, found none"),
        (
            {"metric": {"command": "x", "pattern": "a", "value": 1, "unit": "s"}},
            ("metric", "unit"),
            "expected one of command, json, op, pattern, value, found the unknown key `unit`",
        ),
        (
            {"metric": {"command": "x", "pattern": "a", "value": 1, "op": "=>"}},
            ("metric", "op"),
            "expected '==', '!=', '>=', '>', '<=' or '<' for `op`, found '=>'",
        ),
        (
            {"query": {"path": "a[", "value": 1}},
            ("query", "path"),
            "expected a JMESPath expression, found 'a[' (Invalid jmespath expression: Incomplete expression)",
        ),
        (
            {"parses": "csv"},
            ("parses",),
            "expected 'auto', 'json', 'yaml', 'toml', 'python', 'markdown' or 'xml' for `parses`, found 'csv'",
        ),
        ({"sections": ["x", 5]}, ("sections", 1), "expected a mapping, found 5"),
        ({"size": {"lines": {"min": 5, "max": 1}}}, ("size", "lines"), "expected min <= max, found 5 > 1"),
        ({"files": {}}, ("files",), "expected exist, absent or count, found none of them"),
        (
            {"files": {"exist": "../x"}},
            ("files", "exist"),
            "expected a glob below the rule file's folder, found '../x'",
        ),
        ({"links": False}, ("links",), "expected True for `links`, found false"),
        ({"python": "x"}, ("python",), "expected module:function, found 'x'"),
        ({"tests": "a and"}, ("tests",), "expected node ids or an expression over marks, found 'a and'"),
        ({"tests": "a + b"}, ("tests",), "expected node ids or an expression over marks, found 'a + b'"),
        ({"all": "x"}, ("all",), "expected a list of checks for `all`, found 'x'"),
        ({"any": []}, ("any",), "expected a list of checks for `any`, found []"),
        ({"all": [{"contains": "x"}], "timeout": 5}, ("timeout",), "expected nothing beside `all`, found `timeout`"),
        (
            {"all": ["ok", {"any": [{"contains": 5}]}]},
            ("all", 1, "any", 0, "contains"),
            "expected a list for `contains`, found 5",
        ),
        ({"not": {"x": 1}}, ("not", "x"), f"expected one kind of check ({KINDS}), found `x`"),
        ({"any": [{"tests": "x"}]}, ("any",), "expected `tests` alone, in a list or in `all`, found it in `any`"),
        ({"not": {"tests": "x"}}, ("not",), "expected `tests` alone, in a list or in `all`, found it in `not`"),
        ({"type": "content"}, ("search",), "expected the key `search`, found none"),
        ({"type": "executable", "command": 5}, ("command",), "expected text for `command`, found 5"),
        ({"json_schema": 5}, ("json_schema",), "expected text for `json_schema`, found 5"),
    ],
)
def test_an_invalid_check_reports_its_problem(raw: object, path: tuple[str | int, ...], text: str) -> None:
    with pytest.raises(InvalidCheckError) as caught:
        build_check(raw)
    (problem,) = caught.value.problems
    assert (problem.text, problem.path) == (text, path)


def test_all_problems_of_a_check_are_reported_together() -> None:
    with pytest.raises(InvalidCheckError) as caught:
        build_check([{"contains": 5}, {"command": "x", "timeout": -1, "shell": "yes"}, 7])
    assert [problem.path for problem in caught.value.problems] == [(0, "contains"), (1, "timeout"), (1, "shell"), (2,)]


def test_misspelled_kind_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(InvalidCheckError) as caught:
        build_check({"absnt": "TODO"})
    assert caught.value.problems[0].text.endswith("found `absnt`: did you mean `absent`?")
