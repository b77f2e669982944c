from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.rules.line_numbers import parse_with_lines
from pytest_loop.rules.syntax import MAX_BYTES, ContentError, parse, read_text, validate_syntax

BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{','.join(['*' + chr(97 + at)] * 10)}]\n" for at in range(8)
)


@pytest.mark.parametrize(
    ("kind", "text", "line", "message"),
    [
        ("yaml", BOMB, 1, "expected at most 1,000,000 values, found aliases that expand to more"),
        ("yaml", "a: &a [*a]", 1, "expected at most 1,000,000 values, found aliases that expand to more"),
        ("yaml", "a: &a {b: *a}", 1, "expected at most 1,000,000 values, found aliases that expand to more"),
        ("yaml", "- " * 100_000, 1, "expected at most 100 levels, found deeper nesting"),
        ("yaml", "[" * 100_000, 1, "expected at most 100 levels, found deeper nesting"),
        ("json", "[" * 100_000, 1, "expected at most 100 levels, found deeper nesting"),
        ("toml", "a=" + "[" * 100_000, 1, "expected at most 100 levels, found deeper nesting"),
        ("yaml", "a:\n\tb: 1", 2, "expected spaces for indentation, found a tab"),
        ("yaml", "a: 1\nb: [", 3, "expected YAML, found an error: did not find expected node content"),
        ("yaml", "a: 1\n---\nb: 2", 2, "expected YAML, found another document"),
        ("yaml", "x: *y", 1, "expected YAML, found undefined alias"),
        ("yaml", "? [a]\n: b", 1, "expected YAML, found unhashable key"),
        ("yaml", "a: 2020-13-45", 1, "expected YAML, found an error: month must be in 1..12"),
        (
            "yaml",
            "a: !!python/name:os.system x",
            1,
            "expected YAML, found an error: could not determine a constructor for the tag",
        ),
        ("yaml", "a: 1\nb: \x07", 2, "expected YAML, found the character U+0007"),
        ("json", '{"a": NaN}', 1, "expected a JSON number, found NaN"),
        (
            "json",
            '{"a": 1,\n b: 2}',
            2,
            "expected JSON, found an error: expecting property name enclosed in double quotes in column 2",
        ),
        ("json", "1" * 5000, 1, "expected JSON, found an error: exceeds the limit"),
        ("toml", "a = 1\nb = ", 2, "expected TOML, found an error: invalid value"),
        ("toml", "a = " + "1" * 5000, 1, "expected TOML, found an error: exceeds the limit"),
        ("toml", "a = 1\na = 2", 2, "expected TOML, found an error: cannot overwrite a value"),
    ],
)
def test_malformed_text_is_reported_with_line_and_reason(kind: str, text: str, line: int, message: str) -> None:
    for read in (parse, parse_with_lines):
        with pytest.raises(ContentError) as caught:
            read(text, kind)
        assert str(caught.value).startswith(message)
        assert caught.value.line == line


def test_small_aliases_are_expanded() -> None:
    assert parse("a: &a {x: 1}\nb: {<<: *a, y: [*a]}", "yaml") == {"a": {"x": 1}, "b": {"x": 1, "y": [{"x": 1}]}}


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [
        ("yaml", "a: 1\nb:\n - {c: 1, c: 2}\na: 2\n", [3, 4]),
        ("json", '{"a": 1,\n "b": {"a": 1,\n "c": 1, "c": 2},\n "d": {"e": 1}}', [3]),
    ],
)
def test_every_duplicate_key_is_reported(kind: str, text: str, lines: list[int]) -> None:
    assert sorted(error.line for error in parse_with_lines(text, kind).duplicates) == lines


def test_byte_order_marks_and_carriage_returns_are_removed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    assert read_text(tmp_path / "x") == "a\nb\n"


def test_unreadable_files_are_reported_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"ok\n\xe9t\xe9")
    (tmp_path / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    for name, line, message in [
        ("latin", 2, "expected UTF-8 text, found the byte 0xe9"),
        ("large", 1, "expected at most 8 MB, found 8.0 MB"),
        ("none", 1, "expected a file, found none"),
        ("", 1, "expected a file, found a directory"),
        ("x" * 300, 1, "expected a readable file, found File name too long"),
    ]:
        with pytest.raises(ContentError) as caught:
            read_text(tmp_path / name)
        assert (caught.value.line, str(caught.value)) == (line, message)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ContentError, match="expected a file, found something else"):
        read_text(tmp_path / "pipe")


TOML = '''
# a comment with [[rules]]
version = 1
phases.A.threshold = 0.8
phases."B".threshold = 0.9

[[rules]]
id = "x"
description = """
a [text] with
"quotes" and more"""
check = { contains = ["a",
  'b'], ignore_case = true }
[[rules]]
"id" = 'y'
check.contains = [
  "x",   # a ] in a comment
  """y""",
]
[rules.extra]
z = 2020-01-01T00:00:00
[[rules]]
id = "z"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("version",), 3),
        (("phases",), 4),
        (("phases", "A", "threshold"), 4),
        (("phases", "B", "threshold"), 5),
        (("rules",), 7),
        (("rules", 0), 7),
        (("rules", 0, "description"), 9),
        (("rules", 0, "check", "contains", 1), 13),
        (("rules", 0, "check", "ignore_case"), 13),
        (("rules", 1, "id"), 15),
        (("rules", 1, "check", "contains", 1), 18),
        (("rules", 1, "extra", "z"), 21),
        (("rules", 1, "nothing", "here"), 14),
        (("rules", 2, "id"), 23),
    ],
)
def test_every_value_of_a_toml_file_has_a_line(path: tuple[str | int, ...], line: int) -> None:
    assert parse_with_lines(TOML, "toml").find_line(path) == line


def test_every_value_of_a_json_file_has_a_line() -> None:
    text = '{"a": 1,\n\t"rules": [\n {"id": "x \\ud83d\\ude00",\n "b": 2}]}'
    line = parse_with_lines(text, "json").find_line
    assert [line(path) for path in [(), ("a",), ("rules", 0), ("rules", 0, "b"), ("rules", 7), ("x",)]] == [
        1,
        1,
        3,
        4,
        2,
        1,
    ]


def test_every_value_of_a_yaml_file_has_a_line() -> None:
    line = parse_with_lines("a: 1\nrules:\n  - id: x\n    b: 2\n", "yaml").find_line
    assert [line(path) for path in [(), ("rules",), ("rules", 0), ("rules", 0, "b"), ("rules", 0, "c")]] == [
        1,
        2,
        3,
        4,
        3,
    ]


def test_json_that_yaml_cannot_read_is_reported_in_line_one() -> None:
    assert parse_with_lines('{"' + "k" * 2000 + '": 1, "a": 2}', "json").find_line(("a",)) == 1


def test_yaml_with_several_documents_reports_lines_of_the_file() -> None:
    validate_syntax("---\na: 1\n---\nb: 2\n", "yaml")
    with pytest.raises(ContentError) as caught:
        validate_syntax("a: 1\n---\nb: [\n", "yaml")
    assert caught.value.line == 4
