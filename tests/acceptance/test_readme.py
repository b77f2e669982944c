"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cheats.test_catalogue import CHEATS, HONEST

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[number]  # type: ignore[no-any-return]


def test_the_first_screen_is_what_why_six_lines_the_command_and_its_output() -> None:
    title, what_and_why, *_ = README.split("\n\n")
    assert title == "# pytest-loop"
    assert what_and_why.count("\n") == 1, "one line what it is, one line why"
    assert block("yaml").count("\n") == 6
    assert README.index("```console") < README.index("\n## ")


def test_the_rule_file_is_the_first_example() -> None:
    assert block("yaml") == (ROOT / "examples/first/release.rules.yaml").read_text(encoding="utf-8")


def test_the_output_is_the_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (ROOT / "examples/first").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    command, _, expected = block("console").partition("\n")
    monkeypatch.setenv("COLUMNS", "80")
    words = command.removeprefix("$ ").split()
    done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    found = done.stdout[done.stdout.index("collected") :]
    assert done.returncode == 0, done.stdout + done.stderr
    assert without_time(found) == without_time(expected)


def without_time(text: str) -> list[str]:
    """The time differs, and with it how much of the last line is filled."""
    return [re.sub(r" in [\d.]+s", "", line).strip("= ") for line in text.splitlines()]


def test_the_mended_shop_is_really_mended(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/mend_me", tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    _, _, expected = block("console", 1).partition("\n")
    _, _, words = block("sh").rpartition("/pytest ")
    command = [sys.executable, "-m", "pytest", *shlex.split(words)]
    done = subprocess.run(command, cwd=tmp_path / "shop", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [without_figures(line) for line in done.stdout.splitlines()]
    assert [line for line in map(without_figures, expected.splitlines()) if line not in found] == []


def without_figures(line: str) -> str:
    """How many were tried, in what time, and which of equal lines comes first depends on the machine."""
    return re.sub(r"[\d,]+ edits tried in .*|[\d.]+ s\b|(?<=suspicious: ).*", "...", line)


def test_the_commands_name_folders_that_exist() -> None:
    for number in range(4):
        words = block("sh", number).split()
        assert all((ROOT / word).exists() for word in words if word.startswith("examples/"))


def test_the_loop_of_the_readme_ends_well(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/loop", tmp_path / "examples/loop")
    words = shlex.split(block("sh", 2))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "completed: threshold_reached after iteration 3 of 4, phase B" in done.stdout


def test_links_of_the_documentation_lead_somewhere(pytester: pytest.Pytester) -> None:
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, pytester.path)
    shutil.copytree(ROOT / "docs", pytester.path / "docs")
    pages = sorted(path.relative_to(pytester.path) for path in pytester.path.rglob("*.md"))
    for number, page in enumerate(pages):
        (pytester.path / f"{number}.rules.yaml").write_text(
            f"artifact: {page}\nrules: [{{id: a.docs.links, description: Links, check: {{links: true}}}}]"
        )
    pytester.runpytest().assert_outcomes(passed=len(pages))


def test_contributing_fits_five_screens() -> None:
    assert (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").count("\n") < 200


def test_the_figures_about_cheats_are_those_of_the_catalogue() -> None:
    assert f"Of {len(CHEATS)} known ways" in README
    assert f"of {len(HONEST)} honest fixes" in README
