"""The names of test files, in any language."""

from __future__ import annotations

import re

_TEST = re.compile(
    r"(?:^|/)(?:test_[^/]*\.py|tests\.py|[^/]*_test\.(?:py|go|rb|exs)|[^/]*[._](?:test|spec)\.[cm]?[jt]sx?|[^/]*_spec\.rb"
    r"|__tests__/.*|src/test/.*|tests/[^/]+\.rs|test/[^/]+\.(?:js|ts|rb))$"
)
# The loader of unittest collects more names than pytest.
_UNITTEST = re.compile(r"(?:^|/)test(?!ing)[^/]*\.py$")


def is_test_file(path: str) -> bool:
    """Return whether a path names a test file."""
    return bool(_TEST.search(path))


def may_be_collected(path: str) -> bool:
    """Return whether a test runner may collect a file because of its name."""
    return bool(_TEST.search(path) or _UNITTEST.search(path))


def is_utf8(path: str) -> bool:
    """Return whether a path has no surrogates, which stand for bytes that are not UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in path)
