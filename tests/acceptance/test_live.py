"""A run at a real terminal: a region that stands still, a log above it, and nothing left behind."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.text.terminal_emulation import render_visible_text

RULES = """
    rules:
      - {id: a.words.one, description: It says one, check: {contains: one}}
      - {id: a.words.two, description: It says two, check: {contains: two}}
"""
WRITER = """
    import sys

    number = sys.argv[1]
    print("thinking about the words", file=sys.stderr, flush=True)
    print("one" if number == "1" and sys.argv[2] == "PRODUCE" else "one two")
"""
UP = re.compile(r"\x1b\[\d+A")
Watched = Callable[..., str]


@pytest.fixture
def project(make_project: Callable[..., Path]) -> Path:
    return make_project(words__rules_yaml=RULES, writer_py=WRITER)


@pytest.fixture
def watched(project: Path) -> Watched:
    """A run at a terminal of 100 columns and 30 rows, where every question is answered with yes; gives all that was said."""

    def watch(*words: str, **environment: str) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        agent = f"command:{sys.executable} writer.py {{iteration}} {{step}}"
        task = ("--loop-task", "Write two words", "--loop-agent", agent, "--loop-rules", "words.rules.yaml")
        plain = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "GITHUB_ACTIONS")}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *task, *words],
            cwd=project,
            env={**plain, "TERM": "xterm", "LANG": "C.UTF-8", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        heard = b""
        while data := _read(ours):
            heard += data
            if heard.endswith((b"[y/N] ", b"[Y/n] ")):
                os.write(ours, b"y\n")
        os.close(ours)
        assert process.wait(300) == 0, heard.decode()
        return heard.decode()

    return watch


def _read(terminal: int) -> bytes:
    """What comes next; nothing once everybody has left the terminal."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def frames(text: str) -> list[list[str]]:
    """What stood in the region, each time that it was drawn."""
    found = re.findall(r"── words ─+(?:\x1b\[0m)?\r\n(.*?)(?=\r\x1b|$)", text, re.DOTALL)
    return [render_visible_text(one.replace("\r\n", "\n")).split("\n") for one in found]


def test_the_region_tells_how_it_goes_and_leaves_nothing_behind(watched: Watched) -> None:
    text = watched("--loop-alias", "words")
    drawn = frames(text)
    assert all(len(one) == 3 for one in drawn)
    steps = [one[0] for one in drawn]
    for step in ("PRODUCE by ", "EVALUATE", "REFINE by "):
        assert any(re.match(rf"iteration 1/4, phase A, 0:\d\d: {step}", one) for one in steps), step
    assert any(re.match(r"score ▅ 0\.5 of 0\.8, elapsed 0:\d\d, cost unknown of 25 USD", one[1]) for one in drawn)
    assert "  | thinking about the words" in [one[2] for one in drawn]
    left = render_visible_text(text.replace("\r\n", "\n"))
    assert "── words" not in left
    assert "elapsed" not in left
    assert "  | thinking about the words" in left.splitlines()
    assert "Iteration 2/4 | Phase A | Score 1 | PASS" in left.splitlines()
    assert "completed: threshold_reached after iteration 2 of 4, phase B" in left.splitlines()


def test_a_question_has_the_terminal_for_itself(watched: Watched, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_confirm = always\n")
    text = watched("--loop-alias", "words")
    asked = [one.end() for one in re.finditer(r"\x1b\[J(?=[^\r\n]*\[Y/n\] y\r\n)", text)]
    assert len(asked) == 2, "after the first iteration, and before success is claimed"
    for at in asked:
        screen = render_visible_text(text[:at].replace("\r\n", "\n"))
        assert "── words" not in screen
    left = render_visible_text(text.replace("\r\n", "\n"))
    assert "── words" not in left
    assert "completed: threshold_reached after iteration 2 of 4, phase B" in left.splitlines()


def test_no_color_leaves_out_the_colours_and_nothing_else(watched: Watched) -> None:
    text = watched("--loop-alias", "words", NO_COLOR="1")
    assert frames(text)
    assert "\x1b[1m" not in text
    assert "\x1b[2m" not in text


def test_quiet_says_what_each_iteration_came_to(watched: Watched) -> None:
    left = render_visible_text(watched("--loop-alias", "words", "-q").replace("\r\n", "\n")).splitlines()
    assert "Iteration 1/4 | Phase A | Score 0.5 | FAIL" in left
    assert [line for line in left if "thinking" in line or line.endswith("...")] == []


def test_very_quiet_says_no_more_than_that(watched: Watched) -> None:
    text = watched("--loop-alias", "words", "-qq")
    assert not UP.search(text)
    left = text.replace("\r\n", "\n").splitlines()
    assert "Iteration 1/4 | Phase A | Score 0.5 | FAIL" in left
    assert [line for line in left if "thinking" in line or "fix:" in line or line.startswith("F")] == []


def test_verbose_says_every_event(watched: Watched) -> None:
    left = render_visible_text(watched("--loop-alias", "words", "-v").replace("\r\n", "\n"))
    for event in ("plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done"):
        assert re.search(rf"^\d{{4}}-\S+ +1 A {event}", left, re.MULTILINE), event


@pytest.mark.parametrize("setting", [{"CI": "true"}, {"TERM": "dumb"}])
def test_a_build_gets_plain_lines_even_at_a_terminal(watched: Watched, setting: dict[str, str]) -> None:
    text = watched("--loop-alias", "words", **setting)
    assert not UP.search(text)
    assert "  | thinking about the words\r\n" in text
