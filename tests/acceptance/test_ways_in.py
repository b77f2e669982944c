"""The commands in `docs/ways-in.md` print what the page shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ways-in.md").read_text(encoding="utf-8")


def find_stories() -> Iterator[tuple[str, str]]:
    """Yield the title and the console blocks of each section."""
    for section in PAGE.split("\n## ")[1:]:
        blocks = re.findall(r"^```console\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        yield section.partition("\n")[0], "".join(blocks)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "fix_until_green", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for words in ("init --quiet", "add --all", "-c user.name=me -c user.email=me@example.org commit --quiet -m first"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize(("title", "story"), list(find_stories()), ids=[title for title, _ in find_stories()])
def test_commands_of_the_page_print_what_it_shows(project: Path, title: str, story: str) -> None:
    for part in story.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        output = run_watch(command, project) if "watch" in command.split() else run_command(command, project)
        missing = find_missing_line(expected.splitlines(), output.splitlines())
        assert missing is None, f"{title}: {missing!r} is not what {command!r} says: {output}"


def run_command(command: str, project: Path) -> str:
    words = ["bash", "-c", command]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, timeout=300, check=False).stdout


def run_watch(command: str, project: Path) -> str:
    """Return the output of a watcher while a file is edited, up to an interrupt."""
    output = []
    with subprocess.Popen(command.split(), cwd=project, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        for line in watcher.stdout:
            output.append(line)
            if line.startswith("waiting") and output.count(line) == 1:
                (project / "ledger.py").write_text((project / "ledger.py").read_text() + "\n# edited\n")
            elif line.startswith("waiting"):
                watcher.send_signal(signal.SIGINT)
    return "".join(output)


def find_missing_line(expected: list[str], actual: list[str]) -> str | None:
    """Return the first expected line that does not follow the lines before it."""
    lines = iter(actual)
    for line in expected:
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        if not any(pattern.fullmatch(line) for line in lines):
            return line
    return None
