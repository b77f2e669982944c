"""The stories of `docs/ways-in.md`: a person who types what stands there sees what stands there."""

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


def stories() -> Iterator[tuple[str, str]]:
    """The title of each section, and its blocks."""
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


@pytest.mark.parametrize(("title", "story"), list(stories()), ids=[title for title, _ in stories()])
def test_story(project: Path, title: str, story: str) -> None:
    for part in story.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        said = watched(command, project) if "--loop-watch" in command else done(command, project)
        missing = absent(expected.splitlines(), said.splitlines())
        assert missing is None, f"{title}: {missing!r} is not what {command!r} says: {said}"


def done(command: str, project: Path) -> str:
    words = ["bash", "-c", command]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, timeout=300, check=False).stdout


def watched(command: str, project: Path) -> str:
    """What it says while somebody edits a file, and then interrupts."""
    said = []
    with subprocess.Popen(command.split(), cwd=project, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        for line in watcher.stdout:
            said.append(line)
            if line.startswith("waiting") and said.count(line) == 1:
                (project / "ledger.py").write_text((project / "ledger.py").read_text() + "\n# edited\n")
            elif line.startswith("waiting"):
                watcher.send_signal(signal.SIGINT)
    return "".join(said)


def absent(expected: list[str], found: list[str]) -> str | None:
    """The first line that is not found after those before it."""
    lines = iter(found)
    for line in expected:
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        if not any(pattern.fullmatch(one) for one in lines):
            return line
    return None
