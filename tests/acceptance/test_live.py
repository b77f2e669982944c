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
from pytest_loop.show.look import remove_styles

RULES = """
    rules:
      - {id: a.words.one, description: It says one, check: {contains: one}}
      - {id: a.words.two, description: It says two, check: {contains: two}}
"""
WRITER = """
    import sys
    import time

    number = sys.argv[1]
    print("thinking about the words", file=sys.stderr, flush=True)
    time.sleep(1.5)
    print("one" if number == "1" and sys.argv[2] == "PRODUCE" else "one two")
"""
CURSOR_UP = re.compile(r"\x1b\[\d+A")
RunAtTerminal = Callable[..., str]


@pytest.fixture
def project(make_project: Callable[..., Path]) -> Path:
    return make_project(words__rules_yaml=RULES, writer_py=WRITER)


@pytest.fixture
def run_at_terminal(project: Path) -> RunAtTerminal:
    """Run pytest at a terminal of 100 columns and 30 rows, answer questions with yes, and return its output."""

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
            elif output.endswith(b"artifact.md] "):  # the document stays where it is
                os.write(terminal, b"\n")
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


def find_frames(text: str) -> list[str]:
    """Return the line of progress, each time that it was drawn."""
    return [remove_styles(line) for line in re.findall(r"(?:^|[\n\r]|\x1b\[K)([^\r\n]*)\r\x1b\[K", text)]


def test_live_region_shows_progress_and_is_removed_at_the_end(run_at_terminal: RunAtTerminal) -> None:
    text = run_at_terminal("--loop-alias", "words")
    frames = find_frames(text)
    for words in ("writing · ", "running tests · ", "editing · ", " · thinking about the words"):
        assert any(words in frame for frame in frames), words
    screen = render_visible_text(text.replace("\r\n", "\n"))
    assert "running tests" not in screen
    assert "thinking" not in screen
    assert "1/4  ✗ 1 of 2 pass" in screen.splitlines()
    assert "2/4  ✓ 2 of 2 pass (+1)" in screen.splitlines()
    assert "\ndone in " in screen


@pytest.mark.thorough
def test_live_region_is_hidden_during_a_question(run_at_terminal: RunAtTerminal, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_ask = always\n")
    text = run_at_terminal("--loop-alias", "words")
    questions = [match.start() for match in re.finditer(r"\[Y/n\] y\r\n", text)]
    assert len(questions) == 2, "after the first iteration, and before success is claimed"
    for at in questions:
        screen = render_visible_text(text[:at].replace("\r\n", "\n"))
        assert "running tests" not in screen
    assert "\ndone in " in render_visible_text(text.replace("\r\n", "\n"))


@pytest.mark.thorough
def test_no_color_removes_only_the_colours(run_at_terminal: RunAtTerminal) -> None:
    text = run_at_terminal("--loop-alias", "words", NO_COLOR="1")
    assert find_frames(text)
    assert "\x1b[1m" not in text
    assert "\x1b[2m" not in text


def test_quiet_shows_one_line_per_iteration(run_at_terminal: RunAtTerminal) -> None:
    screen = render_visible_text(run_at_terminal("--loop-alias", "words", "-q").replace("\r\n", "\n")).splitlines()
    assert "1/4  ✗ 1 of 2 pass" in screen
    assert [line for line in screen if "thinking" in line or line.endswith("...")] == []


@pytest.mark.thorough
def test_very_quiet_shows_no_live_region(run_at_terminal: RunAtTerminal) -> None:
    text = run_at_terminal("--loop-alias", "words", "-qq")
    assert not CURSOR_UP.search(text)
    screen = text.replace("\r\n", "\n").splitlines()
    assert any(line.startswith("done in ") for line in map(remove_styles, screen))
    assert [line for line in screen if "thinking" in line or "fix:" in line or line.startswith("F")] == []


@pytest.mark.thorough
def test_verbose_shows_every_event(run_at_terminal: RunAtTerminal) -> None:
    screen = render_visible_text(run_at_terminal("--loop-alias", "words", "-vv").replace("\r\n", "\n"))
    for event in ("plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done"):
        assert re.search(rf"^\d{{4}}-\S+ +1 A {event}", screen, re.MULTILINE), event


@pytest.mark.thorough
@pytest.mark.parametrize("setting", [{"CI": "true"}, {"TERM": "dumb"}])
def test_ci_and_dumb_terminals_get_plain_lines(run_at_terminal: RunAtTerminal, setting: dict[str, str]) -> None:
    text = run_at_terminal("--loop-alias", "words", **setting)
    assert not CURSOR_UP.search(text)
    assert "1/4  ✗ 1 of 2 pass\r\n" in remove_styles(text)
