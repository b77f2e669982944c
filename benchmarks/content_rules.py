"""2,000 content rules in one rule file against 2,000 parametrised tests that look for the same in the same artifact."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from side_by_side import Candidate, arguments, comparison, measure, pytest_command

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


def artifact() -> str:
    """50 kB of lines that differ in their numbers."""
    return "\n".join(f"- entry {number:06}: ready".ljust(WIDTH - 2, ".") + ";" for number in range(LINES)) + "\n"


def texts(count: int) -> list[str]:
    """Texts that stand in the artifact."""
    return [f"entry {_line(number):06}: ready" for number in range(count)]


def patterns(count: int) -> list[str]:
    """Patterns that match in the artifact; no two are the same, so that nothing is gained by remembering them."""
    return [rf"entry {_line(number):06}: \w{{1,{5 + number // LINES}}}\.+;$" for number in range(count)]


def _line(number: int) -> int:
    """Another line for each number, all over the artifact however few there are."""
    return number * 617 % LINES


def write_artifact(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "artifact.md").write_text(artifact(), encoding="utf-8")


def write_rules(path: Path, count: int) -> None:
    """A rule file with `count` rules, every other one a pattern; a scalar in quotes of JSON is one of YAML too."""
    lines = "\n".join(_rules(count))
    path.write_text(f"criteria: {path.name.split('.')[0]}\nartifact: artifact.md\nrules:\n{lines}\n", encoding="utf-8")


def _rules(count: int) -> Iterator[str]:
    half = count // 2
    wanted = [("contains", text) for text in texts(count - half)], [("matches", pattern) for pattern in patterns(half)]
    for number, (kind, value) in enumerate([*wanted[0], *wanted[1]]):
        yield f"  - id: a.content.{kind}-{number:05}"
        yield f"    description: The entry {number} is ready"
        yield f"    check: {{{kind}: {json.dumps(value)}}}"


def write_tests(path: Path, count: int) -> None:
    half = count // 2
    path.write_text(TESTS.format(texts=texts(count - half), patterns=patterns(half)), encoding="utf-8")


def session(folder: Path, write: Callable[[Path, int], None], name: str) -> Candidate:
    """A folder with one file of checks; pytest looks at all files in a folder, so that each has its own."""
    folder.mkdir()
    write_artifact(folder)
    write(folder / name, RULES)
    return Candidate(folder.name, folder, pytest_command("-n0", "-p", "no:cacheprovider"), f"{RULES} passed")


def main() -> None:
    asked = arguments(__doc__, rounds=9).parse_args()
    with tempfile.TemporaryDirectory() as name:
        rules = session(Path(name) / "rules", write_rules, "content.rules.yaml")
        tests = session(Path(name) / "parametrised tests", write_tests, "test_content.py")
        costs = measure([rules, tests], asked.rounds)
    print(f"{RULES:,} content checks of one artifact of {LINES * WIDTH // 1000} kB, {asked.rounds} rounds")
    print(comparison(costs, rules.name, tests.name, TARGET))


if __name__ == "__main__":
    main()
