"""The recipes of CONTRIBUTING.md, applied to a copy of the package, and the list of decisions."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_loop.core.text.toml import tomllib

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = re.split(r"^### ", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
RECIPES = {section.splitlines()[0]: section for section in SECTIONS if "```diff" in section}
# How many files of the package a recipe may change.
MOST_FILES = {
    "Add a check": 2,
    "Add an agent preset": 1,
    "Add a stop reason": 3,
    "Add an option": 2,
    "Add a repair template": 2,
}


def find_block(section: str, language: str) -> str:
    """Return the text of a section's code block."""
    match = re.search(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


def split_diff(diff: str) -> dict[str, list[list[str]]]:
    """Split a diff into hunks by file."""
    files: dict[str, list[list[str]]] = {}
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            hunks = files[line.removeprefix("+++ b/")] = [[]]
        elif line.startswith("@@"):
            hunks.append([])
        elif not line.startswith("--- a/"):
            hunks[-1].append(line)
    return files


def apply_hunk(text: str, hunk: list[str]) -> str:
    """Replace the lines that a hunk names, which must occur once; append a hunk that names none."""
    before = "".join(f"{line[1:]}\n" for line in hunk if line[:1] in (" ", "-"))
    after = "".join(f"{line[1:]}\n" for line in hunk if line[:1] in (" ", "+"))
    if not before:
        return text + after
    assert text.count(before) == 1, before
    return text.replace(before, after)


def test_decisions_are_listed_with_their_titles() -> None:
    folder = ROOT / "docs/decisions"
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in folder.glob("0*.md")}
    listed = re.findall(r"^\d+\. \[(.*)\]\((.*)\)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [(f"# {title}", name) for title, name in listed] == [(titles[name], name) for name in sorted(titles)]


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = itertools.chain(project["dependencies"], *project["optional-dependencies"].values())
    names = {re.split("[<>=;]", requirement)[0].strip() for requirement in requirements}
    note = (ROOT / "docs/decisions/0001-dependencies.md").read_text(encoding="utf-8")
    reasons = note.partition("## Consequences")[0].lower()
    assert [name for name in sorted(names) if name.lower() not in reasons] == []


def test_every_recipe_has_a_bound() -> None:
    assert RECIPES.keys() == MOST_FILES.keys()


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_changes_few_files_and_works(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "pytest_loop", tmp_path / "pytest_loop", ignore=shutil.ignore_patterns("__pycache__"))
    files = split_diff(find_block(RECIPES[name], "diff"))
    assert 0 < len(files) <= MOST_FILES[name]
    for path, hunks in files.items():
        text = (tmp_path / path).read_text(encoding="utf-8")
        for hunk in hunks:
            text = apply_hunk(text, hunk)
        (tmp_path / path).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", find_block(RECIPES[name], "python")]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
