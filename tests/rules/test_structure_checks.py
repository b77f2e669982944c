from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.errors import CheckError

Run = Callable[..., list[str]]

DOC = """\
# Guide

Intro with a [link](#usage) and [another](other.md#part-one) and ![picture](pic.png).

## Install

pip it

```json
{"a": 1}
```

## Usage

How to.

Setext below
------------

``` python
x = 1
```

## Empty

<a id="custom"></a>

## Usage
"""


@pytest.mark.parametrize(
    "raw",
    [
        {"sections": ["Guide", "install", "USAGE"]},
        {"sections": ["Install", "Usage"], "in_order": True},
        {"sections": [{"heading": "Usage", "after": "Install"}]},
        {"sections": [{"heading": "Guide", "words": 5}], "words": 100},
        {"sections": ["Setext below"]},
        {"parses": "markdown"},
        {"parses": {"format": "json", "block": "json"}},
        {"parses": {"format": "python", "block": 2}},
        {"size": {"lines": {"min": 5, "max": 40}, "words": {"min": 3}, "bytes": {"max": 1000}}},
        {"query": {"path": "a", "value": 1}, "block": "json"},
        {"query": {"path": "a", "value": 1}, "block": 1},
    ],
)
def test_structure_checks_pass_on_matching_structure(run: Run, raw: object) -> None:
    assert run(raw, DOC) == []


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ({"sections": ["Guide", "Licence"]}, ["doc.md: expected a section 'Licence', found none"]),
        (
            {"sections": ["Usage", "Install"], "in_order": True},
            ["doc.md:5: expected 'Install' after 'Usage', found it before"],
        ),
        (
            {"sections": [{"heading": "Install", "after": "Usage"}]},
            ["doc.md:5: expected 'Install' after 'Usage', found it before"],
        ),
        (
            {"sections": [{"heading": "Install", "after": "Nothing"}]},
            ["doc.md:5: expected 'Install' after 'Nothing', found no section 'Nothing'"],
        ),
        (
            {"sections": [{"heading": "Install", "words": 9}]},
            ["doc.md:5: expected 9 words in the section 'Install', found 5"],
        ),
        ({"parses": "json"}, ["doc.md:1: expected JSON, found an error: expecting value in column 1"]),
        (
            {"parses": {"format": "yaml", "block": "toml"}},
            ["doc.md:1: expected a fenced block of toml, found 2 fenced blocks"],
        ),
        (
            {"parses": {"format": "yaml", "block": 3}},
            ["doc.md:1: expected fenced block number 3, found 2 fenced blocks"],
        ),
        (
            {"parses": {"format": "xml", "block": "json"}},
            ["doc.md:10: expected XML, found not well-formed (invalid token)"],
        ),
        ({"size": {"lines": {"max": 3}}}, ["doc.md: expected at most 3 lines, found 28"]),
        ({"size": {"words": {"min": 100}}}, ["doc.md: expected at least 100 words, found 37"]),
        ({"size": {"bytes": {"min": 1, "max": 2}}}, ["doc.md: expected 1 to 2 bytes, found 246"]),
    ],
)
def test_structure_checks_name_the_place_of_each_problem(run: Run, raw: object, lines: list[str]) -> None:
    assert run(raw, DOC) == lines


def test_a_heading_without_any_text_is_an_empty_section(run: Run) -> None:
    lines = run({"sections": ["One", "Two"]}, "# One\n\n## Two\n\n---\n")
    assert lines == ["doc.md:3: expected some text in the section 'Two', found nothing"]


@pytest.mark.parametrize(
    ("kind", "good", "bad", "line", "reason"),
    [
        (
            "json",
            "{}",
            "{",
            1,
            "expected JSON, found an error: expecting property name enclosed in double quotes in column 2",
        ),
        ("yaml", "a: 1", "a: [", 2, "expected YAML, found an error: did not find expected node content"),
        ("toml", "a = 1", "a = ", 1, "expected TOML, found an error: invalid value"),
        ("python", "x = 1\nif x is 1: pass", "x =\n", 1, "expected Python, found invalid syntax"),
        ("markdown", "```\nx\n```\n", "text\n\n```\nx\n", 3, "expected a closing fence, found the end of the text"),
        ("xml", "<a/>", "<a>\n</b>", 2, "expected XML, found mismatched tag"),
        (
            "xml",
            "<!DOCTYPE a><a/>",
            '<!DOCTYPE a [<!ENTITY b "b">]>\n<a/>',
            1,
            "expected XML without entity declarations, found one",
        ),
    ],
)
def test_parses_accepts_and_refuses_each_format(
    run: Run, kind: str, good: str, bad: str, line: int, reason: str
) -> None:
    assert run({"parses": kind}, good) == []
    assert run({"parses": kind}, bad) == [f"doc.md:{line}: {reason}"]


def test_text_that_the_compiler_refuses_is_not_python(run: Run) -> None:
    assert run({"parses": "python"}, "x = 1\0") != []
    assert run({"parses": "python"}, "x = 1\nreturn x") == [
        "doc.md:2: expected Python, found 'return' outside function"
    ]
    assert run({"parses": "python"}, "-" * 100_000 + "1")[0].startswith("doc.md:1: expected Python, found")
    assert run({"parses": "python"}, "(" * 1000 + ")" * 1000)[0].startswith("doc.md:1: expected Python, found")


def test_the_format_is_detected_from_the_file_name(run: Run) -> None:
    assert run({"parses": "auto"}, "a = 1", "x.toml") == []
    assert run({"parses": "auto"}, "a = ", "x.toml") == ["x.toml:1: expected TOML, found an error: invalid value"]
    with pytest.raises(
        CheckError, match=r"cannot tell the format of x.unknown from its name: say which with `format:`"
    ):
        run({"parses": "auto"}, "", "x.unknown")


def test_links_are_followed_inside_the_project(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Part *One*\n")
    (tmp_path / "pic.png").write_bytes(b"")
    (tmp_path / "with space.txt").write_text("")
    good = "[w](https://example.com/x#y) [m](mailto:a@b.c) [s](with%20space.txt) [r](/other.md) [c](#custom) [u](#usage-1) [p](pic.png#x)"
    assert run({"links": True}, DOC + good) == []


def test_links_of_a_document_in_the_folder_of_a_run_may_start_at_the_root(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".loop").mkdir()
    (tmp_path / "other.md").write_text("# Part\n")
    assert run({"links": True}, "[a](other.md#part)\n", ".loop/doc.md") == []
    (tmp_path / "docs").mkdir()
    assert run({"links": True}, "[a](other.md#part)\n", "docs/doc.md")


def test_dead_links_are_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One\n")
    bad = "[a](#nope)\n[b](none.md)\n[c](other.md#two)\n[d](../../etc/passwd)\n![e](no.png)\n"
    assert run({"links": True}, bad) == [
        "doc.md:1: expected the link '#nope' to lead somewhere, found no such heading",
        "doc.md:2: expected the link 'none.md' to lead somewhere, found no such file",
        "doc.md:3: expected the link 'other.md#two' to lead somewhere, found no such heading",
        "doc.md:4: expected the link '../../etc/passwd' to lead somewhere, found a path out of the project",
        "doc.md:5: expected the link 'no.png' to lead somewhere, found no such file",
    ]


def test_a_missing_artifact_is_a_finding(run: Run, tmp_path: Path) -> None:
    assert run({"contains": "x"}, name="none.md") == ["none.md:1: expected a file, found none"]
    assert run({"size": {"bytes": {"min": 1}}}, name="none.md") == ["none.md:1: expected a file, found none"]
    (tmp_path / "folder").mkdir()
    assert run({"contains": "x"}, name="folder") == ["folder:1: expected a file, found a directory"]
    assert run({"size": {"bytes": {"min": 1}}}, name="folder") == ["folder:1: expected a file, found a directory"]
    assert run({"contains": "x"}, name="x" * 300)[0].endswith(":1: expected a readable file, found File name too long")
    assert run({"contains": "x"}, b"\xff") == ["doc.md:1: expected UTF-8 text, found the byte 0xff"]


def test_a_link_out_of_the_project_is_not_followed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "doc.md").symlink_to("/etc/passwd")
    with pytest.raises(CheckError, match=r"doc\.md leads out of the project"):
        run({"contains": "root"})


def test_a_changed_artifact_is_read_again(run: Run) -> None:
    assert run({"contains": "one"}, "one") == []
    assert run({"contains": "one"}, "another") == ["doc.md: expected the text 'one', found it nowhere"]
