"""The README shows real commands, files and outputs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.test_manual import find_missing
from tests.cheats.test_catalogue import CHEATS, HONEST

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def find_block(language: str, number: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[number]  # type: ignore[no-any-return]


def test_readme_fits_three_screens() -> None:
    title, introduction, *_ = README.split("\n\n")
    assert title == "# pytest-loop"
    assert introduction.count("\n") == 1, "one line what it is, one line why"
    assert README.count("\n") <= 120
    assert all((ROOT / path).exists() for path in re.findall(r"!\[[^]]*\]\((.*?)\)", README))


def test_rule_file_is_the_first_example() -> None:
    assert find_block("yaml") == (ROOT / "examples/first/release.rules.yaml").read_text(encoding="utf-8")


def test_output_of_the_first_example_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (ROOT / "examples/first").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    command, _, expected = find_block("console", 1).partition("\n")
    monkeypatch.setenv("COLUMNS", "80")
    arguments = command.removeprefix("$ ").split()
    process = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    output = process.stdout[process.stdout.index("collected") :]
    assert process.returncode == 0, process.stdout + process.stderr
    assert remove_time(output) == remove_time(expected)


def remove_time(text: str) -> list[str]:
    """Remove the time and the fill characters, whose number depends on it."""
    return [re.sub(r" in [\d.]+s", "", line).strip("= ") for line in text.splitlines()]


def test_output_of_the_repair_example_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples/fix_me", tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    command, _, expected = find_block("console").partition("\n")
    monkeypatch.setenv("COLUMNS", "140")
    process = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)[1:]],
        cwd=tmp_path / "shop",
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    lines = process.stdout.splitlines()
    assert len(lines) <= 30
    assert find_missing([remove_figures(line) for line in expected.splitlines()], lines) is None, process.stdout


def remove_figures(line: str) -> str:
    """Remove what depends on the machine: counts and times."""
    return re.sub(r"[\d,]+ edits tried in .*|(?<=done in )[\d:]+", "...", line)


def test_links_of_the_documentation_are_valid(pytester: pytest.Pytester) -> None:
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, pytester.path)
    for folder in ("docs", "benchmarks"):
        shutil.copytree(ROOT / folder, pytester.path / folder)
    pages = sorted(path.relative_to(pytester.path) for path in pytester.path.rglob("*.md"))
    for number, page in enumerate(pages):
        (pytester.path / f"{number}.rules.yaml").write_text(
            f"artifact: {page}\nrules: [{{id: a.docs.links, description: Links, check: {{links: true}}}}]"
        )
    names = [f"{number}.rules.yaml" for number in range(len(pages))]
    pytester.runpytest(*names).assert_outcomes(passed=len(pages))


def test_contributing_fits_five_screens() -> None:
    assert (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").count("\n") < 200


def test_numbers_of_cheats_and_honest_fixes_match_the_catalogue() -> None:
    assert f"Of {len(CHEATS)} known ways" in README
    assert f"of {len(HONEST)} honest fixes" in README
