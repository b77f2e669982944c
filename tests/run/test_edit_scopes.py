"""Two runs may edit the same files unless their scopes are apart."""

from __future__ import annotations

import pytest

from pytest_loop.run.worktree import can_overlap


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([], [], True),
        ([], ["docs/"], True),
        (["docs/"], ["/src/"], True),  # a pattern without a slash inside matches anywhere
        (["/docs/"], ["/src/"], False),
        (["docs/a/"], ["docs/b/"], False),
        (["docs/a/"], ["docs/a/b.md"], True),
        (["/docs/*.md"], ["/src/**/x.py"], False),
        (["/docs/*.md"], ["/docs/x.md"], True),
        (["src/a/x.py", "docs/one/"], ["src/b/", "docs/one/x"], True),
        (["src/a/", "!src/b/"], ["src/b/"], False),
        (["src/b/"], ["!src/b/"], False),
        (["*.py"], ["docs/x/"], True),
    ],
)
def test_scopes_are_apart_only_if_leading_folders_differ(first: list[str], second: list[str], expected: bool) -> None:
    assert can_overlap(first, second) is expected
    assert can_overlap(second, first) is expected
