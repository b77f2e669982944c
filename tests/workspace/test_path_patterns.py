"""Patterns are those of .gitignore, for any name that a disk can hold."""

from __future__ import annotations

import pytest
from pathspec import GitIgnoreSpec

from pytest_loop.workspace.path_patterns import PathPatterns, PatternError, check_path, join_specs, parse_line

NAMES = ["a\nb.py", "a'\"b.py", "-rf.py", "\U0001f600.py", "\udcff.py", " .py", "a\n", "\n"]


@pytest.mark.parametrize(
    ("patterns", "path", "fits"),
    [
        (["src"], "src/a.py", True),
        (["src/"], "src/deep/a.py", True),
        (["src/"], "src", False),
        (["*.py"], "src/deep/a.py", True),
        (["/*.py"], "src/a.py", False),
        (["src/**/a.py"], "src/x/y/a.py", True),
        (["src/*", "!src/keep.py"], "src/keep.py", False),
        (["src/*", "!src/keep.py"], "src/other.py", True),
        (["test_[ab].py"], "deep/test_b.py", True),
        (["test_[ab].py"], "deep/test_c.py", False),
        (["tests"], "mytests/a.py", False),
        (["\\!important"], "!important", True),
        ([], "src/a.py", False),
    ],
)
def test_patterns_match_as_in_gitignore(patterns: list[str], path: str, fits: bool) -> None:
    assert PathPatterns(patterns).matches(path) is fits


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pattern", ["tests/", "tests/**", "tests/*", "/tests", "*"])
def test_no_name_escapes_a_pattern(pattern: str, name: str) -> None:
    assert PathPatterns([pattern]).matches(f"tests/{name}")


@pytest.mark.parametrize("pattern", ["", " ", "!", "# a note", "[", "a\\"])
def test_pattern_without_meaning_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"expected a pattern as in \.gitignore, found '"):
        PathPatterns(["src/", pattern])


def test_empty_patterns_are_false() -> None:
    assert not PathPatterns([])
    assert PathPatterns(["a"])


@pytest.mark.parametrize(
    "path", ["a.py", "b/a.py", "tests/x", "tests/deep/x.txt", "new\nline.py", "data/x.txt", ".github/w.yml", "x.pth"]
)
def test_joined_expressions_select_the_same_paths_as_the_patterns(path: str) -> None:
    for patterns in [("*.py",), ("/tests/", "!x.txt"), (".github/", "*.pth", "!/x.pth"), ("new?line.*",), ()]:
        spec = join_specs(parse_line(pattern) or GitIgnoreSpec([]) for pattern in patterns)
        assert PathPatterns(patterns).matches(path) is bool(check_path(spec, path))
