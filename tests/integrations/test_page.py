"""The commands in `docs/integrations.md` print what the page shows."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_ways_in import find_missing_line, run_command

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")


def find_stories() -> Iterator[tuple[str, str]]:
    """Yield the title and the console blocks of each section that has some."""
    for section in PAGE.split("\n## ")[1:]:
        blocks = re.findall(r"^```console\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        if blocks:
            yield section.partition("\n")[0], "".join(blocks)


@pytest.mark.parametrize(("title", "story"), list(find_stories()), ids=[title for title, _ in find_stories()])
def test_commands_of_the_page_print_what_it_shows(
    title: str, story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "fix_until_green", project, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for part in story.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        output = run_command(command, project)
        missing = find_missing_line(expected.splitlines(), output.splitlines())
        assert missing is None, f"{title}: {missing!r} is not what {command!r} says: {output}"
