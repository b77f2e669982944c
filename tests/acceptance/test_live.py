"""Runs at a real terminal: a live region below a log, removed at the end."""

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
CURSOR_UP = re.compile(r"\x1b\[\d+A")
RunAtTerminal = Callable[..., str]


@pytest.fixture
def project(make_project: Callable[..., Path]) -> Path:
    return make_project(words__rules_yaml=RULES, writer_py=WRITER)


@pytest.fixture
def run_at_terminal(project: Path) -> RunAtTerminal:
    """Run pytest at a terminal of 100 columns and 30 rows, answer every question with yes, and return its output."""

    def run(*arguments: str, **environment: str) -> str:
        terminal, child_terminal = pty.openpty()
        fcntl.ioctl(child_terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        agent = f"command:{sys.executable} writer.py {{iteration}} {{step}}"
        task = ("--loop-task", "Write two words", "--loop-agent", agent, "--loop-rules", "words.rules.yaml")
        plain = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "GITHUB_ACTIONS")}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *task, *arguments],
            cwd=project,
            env={**plain, "TERM": "xterm", "LANG": "C.UTF-8", **environment},
            stdin=child_terminal,
            stdout=child_terminal,
            stderr=child_terminal,
        )
        os.close(child_terminal)
        output = b""
        while data := _read(terminal):
            output += data
            if output.endswith((b"[y/N] ", b"[Y/n] ")):
                os.write(terminal, b"y\n")
        os.close(terminal)
        assert process.wait(300) == 0, output.decode()
        return output.decode()

    return run


def _read(terminal: int) -> bytes:
    """Return the next output, or nothing after the last process closed the terminal."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def find_frames(text: str) -> list[list[str]]:
    """Return the lines of the live region, each time that it was drawn."""
    regions = re.findall(r"── words ─+(?:\x1b\[0m)?\r\n(.*?)(?=\r\x1b|$)", text, re.DOTALL)
    return [render_visible_text(region.replace("\r\n", "\n")).split("\n") for region in regions]


def test_live_region_shows_progress_and_is_removed_at_the_end(run_at_terminal: RunAtTerminal) -> None:
    text = run_at_terminal("--loop-alias", "words")
    frames = find_frames(text)
    assert all(len(frame) == 3 for frame in frames)
    steps = [frame[0] for frame in frames]
    for step in ("PRODUCE by ", "EVALUATE", "REFINE by "):
        assert any(re.match(rf"iteration 1/4, phase A, 0:\d\d: {step}", line) for line in steps), step
    assert any(re.match(r"score ▅ 0\.5 of 0\.8, elapsed 0:\d\d, cost unknown of 25 USD", frame[1]) for frame in frames)
    assert "  | thinking about the words" in [frame[2] for frame in frames]
    screen = render_visible_text(text.replace("\r\n", "\n"))
    assert "── words" not in screen
    assert "elapsed" not in screen
    assert "  | thinking about the words" in screen.splitlines()
    assert "Iteration 2/4 | Phase A | Score 1 | PASS" in screen.splitlines()
    assert "completed: threshold_reached after iteration 2 of 4, phase B" in screen.splitlines()


def test_live_region_is_hidden_during_a_question(run_at_terminal: RunAtTerminal, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_confirm = always\n")
    text = run_at_terminal("--loop-alias", "words")
    questions = [match.end() for match in re.finditer(r"\x1b\[J(?=[^\r\n]*\[Y/n\] y\r\n)", text)]
    assert len(questions) == 2, "after the first iteration, and before success is claimed"
    for at in questions:
        screen = render_visible_text(text[:at].replace("\r\n", "\n"))
        assert "── words" not in screen
    screen = render_visible_text(text.replace("\r\n", "\n"))
    assert "── words" not in screen
    assert "completed: threshold_reached after iteration 2 of 4, phase B" in screen.splitlines()


def test_no_color_removes_only_the_colours(run_at_terminal: RunAtTerminal) -> None:
    text = run_at_terminal("--loop-alias", "words", NO_COLOR="1")
    assert find_frames(text)
    assert "\x1b[1m" not in text
    assert "\x1b[2m" not in text


def test_quiet_shows_one_line_per_iteration(run_at_terminal: RunAtTerminal) -> None:
    screen = render_visible_text(run_at_terminal("--loop-alias", "words", "-q").replace("\r\n", "\n")).splitlines()
    assert "Iteration 1/4 | Phase A | Score 0.5 | FAIL" in screen
    assert [line for line in screen if "thinking" in line or line.endswith("...")] == []


def test_very_quiet_shows_no_live_region(run_at_terminal: RunAtTerminal) -> None:
    text = run_at_terminal("--loop-alias", "words", "-qq")
    assert not CURSOR_UP.search(text)
    screen = text.replace("\r\n", "\n").splitlines()
    assert "Iteration 1/4 | Phase A | Score 0.5 | FAIL" in screen
    assert [line for line in screen if "thinking" in line or "fix:" in line or line.startswith("F")] == []


def test_verbose_shows_every_event(run_at_terminal: RunAtTerminal) -> None:
    screen = render_visible_text(run_at_terminal("--loop-alias", "words", "-v").replace("\r\n", "\n"))
    for event in ("plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done"):
        assert re.search(rf"^\d{{4}}-\S+ +1 A {event}", screen, re.MULTILINE), event


@pytest.mark.parametrize("setting", [{"CI": "true"}, {"TERM": "dumb"}])
def test_ci_and_dumb_terminals_get_plain_lines(run_at_terminal: RunAtTerminal, setting: dict[str, str]) -> None:
    text = run_at_terminal("--loop-alias", "words", **setting)
    assert not CURSOR_UP.search(text)
    assert "  | thinking about the words\r\n" in text
