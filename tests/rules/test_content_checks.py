from __future__ import annotations

from collections.abc import Callable

import pytest

Run = Callable[..., list[str]]


DOC = "# Title\n\nHello World\nhello again\n\n## Usage\n\nRun it.\n\n### Deep\n\nHello\n\n## Licence\n\nMIT\n"


@pytest.mark.parametrize(
    "raw",
    [
        {"contains": "Hello"},
        {"contains": ["Hello", "MIT"]},
        {"contains": "HELLO", "ignore_case": True, "min_matches": 3, "max_matches": 3},
        {"contains": "Hello", "section": "usage"},
        {"contains": "nothing", "min_matches": 0},
        {"absent": "Goodbye"},
        {"absent": "World", "section": "## Usage"},
        {"matches": "^hello"},
        {"matches": ["^H", "T$"], "ignore_case": True},
        {"matches": "^## ", "min_matches": 2},
        {"not_matches": r"\bTODO\b"},
        {"type": "content", "search": "^# Title", "expected": "a title"},
        {"type": "content", "search": "(unclosed", "expected": "none", "negate": True, "rule_id": "kept"},
        {"type": "content", "search": "hello$|^HELLO", "flags": "i", "min_matches": 3},
    ],
)
def test_content_checks_pass_on_matching_content(run: Run, raw: object) -> None:
    assert run(raw, DOC) == []


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ({"contains": ["Hello", "Goodbye"]}, ["doc.md: expected the text 'Goodbye', found it nowhere"]),
        ({"contains": "Hello", "min_matches": 3}, ["doc.md: expected the text 'Hello' at least 3 times, found 2"]),
        (
            {"contains": "Hello", "max_matches": 1},
            ["doc.md:12: expected the text 'Hello' at most 1 times, found one more"],
        ),
        ({"contains": "World", "section": "Usage"}, ["doc.md:6: expected the text 'World', found it nowhere"]),
        ({"contains": "x", "section": "Install"}, ["doc.md:1: expected a section 'Install', found none"]),
        (
            {"absent": "Hello"},
            ["doc.md:3: expected no text 'Hello', found it", "doc.md:12: expected no text 'Hello', found it"],
        ),
        ({"absent": "RUN", "section": "usage", "ignore_case": True}, ["doc.md:8: expected no text 'RUN', found it"]),
        ({"matches": "^Bye"}, ["doc.md: expected a match of '^Bye', found it nowhere"]),
        ({"not_matches": "(?#a greeting)^hello"}, ["doc.md:4: expected no match, found a greeting"]),
        ({"matches": "(?i)(?#a farewell)^bye"}, ["doc.md: expected a farewell, found it nowhere"]),
        ({"not_matches": "^hello"}, ["doc.md:4: expected no match of '^hello', found it"]),
        ({"not": {"matches": "^hello"}}, ["doc.md:4: expected no match of '^hello', found it"]),
        ({"not": {"contains": "World"}}, ["doc.md:3: expected no text 'World', found it"]),
        ({"not": {"contains": "x", "min_matches": 0}}, ["expected the check not to pass, found that it passed"]),
        (
            {"type": "content", "search": "Bye", "expected": "x"},
            ["doc.md: expected a match of 'Bye', found it nowhere"],
        ),
        ({"type": "content", "search": "MIT", "negate": True}, ["doc.md:16: expected no match of 'MIT', found it"]),
        ({"type": "content", "search": "(MIT"}, ["doc.md: expected the text '(MIT', found it nowhere"]),
    ],
)
def test_content_checks_name_the_place_of_each_problem(run: Run, raw: object, lines: list[str]) -> None:
    assert run(raw, DOC) == lines


def test_lines_after_front_matter_count_from_the_start_of_the_file(run: Run) -> None:
    text = "---\ntitle: x\n---\n# One\n\n## Two\n\nbad word\n"
    assert run({"absent": "bad", "section": "Two"}, text) == ["doc.md:8: expected no text 'bad', found it"]
