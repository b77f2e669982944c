"""Compare 2,000 content rules in one rule file with 2,000 parametrised tests of the same texts and patterns."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from side_by_side import Candidate, make_parser, make_pytest_command, measure, render_comparison

TARGET = 1.0
RULES = 2_000
LINES = 1_000
WIDTH = 50

TESTS = """
import re
from pathlib import Path

import pytest

TEXT = Path("artifact.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", {texts})
def test_contains(text):
    assert text in TEXT


@pytest.mark.parametrize("pattern", {patterns})
def test_matches(pattern):
    assert re.search(pattern, TEXT, re.MULTILINE)
"""


def make_artifact() -> str:
    """Return 50 kB of lines that differ in their numbers."""
    return "\n".join(f"- entry {number:06}: ready".ljust(WIDTH - 2, ".") + ";" for number in range(LINES)) + "\n"


def make_texts(count: int) -> list[str]:
    """Return texts that are in the artifact."""
    return [f"entry {_select_line(number):06}: ready" for number in range(count)]


def make_patterns(count: int) -> list[str]:
    """Return patterns that match in the artifact, all different, so that no cache of patterns helps."""
    return [rf"entry {_select_line(number):06}: \w{{1,{5 + number // LINES}}}\.+;$" for number in range(count)]


def _select_line(number: int) -> int:
    """Map numbers to lines that are spread over the artifact."""
    return number * 617 % LINES


def write_artifact(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "artifact.md").write_text(make_artifact(), encoding="utf-8")


def write_rules(path: Path, count: int) -> None:
    """Write a rule file with `count` rules, half of them patterns."""
    lines = "\n".join(_render_rules(count))
    path.write_text(f"criteria: {path.name.split('.')[0]}\nartifact: artifact.md\nrules:\n{lines}\n", encoding="utf-8")


def _render_rules(count: int) -> Iterator[str]:
    half = count // 2
    checks = (
        [("contains", text) for text in make_texts(count - half)],
        [("matches", pattern) for pattern in make_patterns(half)],
    )
    for number, (kind, value) in enumerate([*checks[0], *checks[1]]):
        yield f"  - id: a.content.{kind}-{number:05}"
        yield f"    description: The entry {number} is ready"
        yield f"    check: {{{kind}: {json.dumps(value)}}}"


def write_tests(path: Path, count: int) -> None:
    half = count // 2
    path.write_text(TESTS.format(texts=make_texts(count - half), patterns=make_patterns(half)), encoding="utf-8")


def make_candidate(folder: Path, write: Callable[[Path, int], None], name: str) -> Candidate:
    """Write one file of checks into a new folder, because pytest collects every file of a folder."""
    folder.mkdir()
    write_artifact(folder)
    write(folder / name, RULES)
    return Candidate(folder.name, folder, make_pytest_command("-n0", "-p", "no:cacheprovider"), f"{RULES} passed")


def main() -> None:
    options = make_parser(__doc__, rounds=9).parse_args()
    with tempfile.TemporaryDirectory() as name:
        rules = make_candidate(Path(name) / "rules", write_rules, "content.rules.yaml")
        tests = make_candidate(Path(name) / "parametrised tests", write_tests, "test_content.py")
        costs = measure([rules, tests], options.rounds)
    print(f"{RULES:,} content checks of one artifact of {LINES * WIDTH // 1000} kB, {options.rounds} rounds")
    print(render_comparison(costs, rules.name, tests.name, TARGET))


if __name__ == "__main__":
    main()
