from __future__ import annotations

import io
import os

import pytest

from pytest_loop.core.text.terminal_emulation import render_visible_text
from pytest_loop.show.live_view import MAX_BYTES, LiveView
from pytest_loop.show.look import Look

AT_TERMINAL = Look(has_progress=True)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Window:
    """A terminal of changeable size, and its visible lines."""

    def __init__(self, look: Look = AT_TERMINAL, columns: int = 60) -> None:
        self.stream, self.clock = Terminal(), Clock()
        self.size = os.terminal_size((columns, 24))
        self.live = LiveView(self.stream, look, clock=self.clock, get_size=lambda: self.size)
        self.live.position = "1/4"

    @property
    def visible_lines(self) -> list[str]:
        return render_visible_text(self.stream.getvalue()).splitlines()


# -- a log


def test_log_of_agents_is_shown_only_if_very_verbose() -> None:
    stream, clock = io.StringIO(), Clock()
    live = LiveView(stream, Look(2), clock=clock)
    with live.show_work("me · REFINE") as worker:
        worker.write(b"think")
        worker.write(b"ing\n\x1b[31mred\x1b[0m\n\nunfinished")
        clock.now += 5
        live.refresh()
    assert stream.getvalue() == "me · REFINE ...\n  | thinking\n  | red\n  | unfinished\nme · REFINE took 5.0 s\n"


@pytest.mark.parametrize("verbosity", [-2, -1, 0, 1])
def test_work_of_agents_leaves_nothing_in_the_log(verbosity: int) -> None:
    stream = io.StringIO()
    with LiveView(stream, Look(verbosity)).show_work("me · REFINE") as worker:
        worker.write(b"thinking\n")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("verbosity", "expected"), [(0, "1/4\n"), (1, "..F.\n1/4\n")])
def test_output_of_sessions_is_shown_as_it_comes_if_verbose(verbosity: int, expected: str) -> None:
    stream = io.StringIO()
    live = LiveView(stream, Look(verbosity))
    live.write_session_output(b"..F")
    assert stream.getvalue() == expected.partition(".\n1/4")[0] * verbosity
    live.write_session_output(b".")
    live.write("1/4")
    live.close()
    assert stream.getvalue() == expected, "a line that a session left open is ended first"


@pytest.mark.parametrize(("verbosity", "count"), [(-1, 0), (0, 2), (1, 2)])
def test_long_work_is_named_ever_less_often_in_a_pipe(verbosity: int, count: int) -> None:
    stream, clock = io.StringIO(), Clock()
    live = LiveView(stream, Look(verbosity), clock=clock)
    with live.show_work("codex") as worker:
        worker.write(b"Reconnecting... 2/5\n")
        for _ in range(230):
            clock.now += 1
            live.refresh()
    lines = ["     codex · 1:00 · Reconnecting... 2/5", "     codex · 2:00 · Reconnecting... 2/5"]
    assert stream.getvalue().splitlines() == lines[:count]


def test_lines_are_shown_from_a_verbosity_on() -> None:
    stream = io.StringIO()
    live = LiveView(stream, Look(-1))
    for verbosity in (None, -1, 0):
        live.write(f"from {verbosity}", verbosity)
    assert stream.getvalue() == "from None\nfrom -1\n"


def test_line_without_an_end_is_split() -> None:
    stream = io.StringIO()
    with LiveView(stream, Look(2)).show_work("REFINE") as worker:
        worker.write(b"x" * 100_000)
        worker.write(b"y\n")
    assert len(stream.getvalue()) < 2_000


def test_output_of_an_agent_is_limited() -> None:
    stream = io.StringIO()
    with LiveView(stream, Look(2)).show_work("REFINE") as worker:
        for _ in range(3 * MAX_BYTES // 1000):
            worker.write(b"word " * 199 + b"end.\n")
    lines = stream.getvalue().splitlines()
    assert lines[-2] == "  | (more than 1 MB of output: the rest is not shown)"
    assert len(stream.getvalue()) < MAX_BYTES


def test_reader_that_has_gone_ends_no_run() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        live = LiveView(stream, Look())
        live.write("1/4")
        live.write("2/4")


def test_symbols_are_replaced_where_they_cannot_be_shown() -> None:
    stream = io.StringIO()
    LiveView(stream, Look(has_symbols=False)).write("1/4  ✗ 1 of 2 pass · ✓ …")
    assert stream.getvalue() == "1/4  x 1 of 2 pass - ok ...\n"


# -- a terminal


def test_terminal_shows_the_last_words_of_an_agent_in_one_line() -> None:
    window = Window()
    window.live.write("1/4  ✗ 1 of 2 pass")
    with window.live.show_work("me · REFINE") as worker:
        worker.write(b"thinking\nabout it\n")
        window.clock.now += 65
        window.live.refresh()
        assert window.visible_lines == ["1/4  ✗ 1 of 2 pass", "1/4  me · REFINE · 1:05 · about it"]
    window.live.close()
    assert window.visible_lines == ["1/4  ✗ 1 of 2 pass"]


def test_terminal_shows_how_far_a_session_is() -> None:
    window = Window()
    with window.live.show_session("running tests", lambda: "312/3,000, 2 failing"):
        window.clock.now += 12
        window.live.refresh()
        assert window.visible_lines == ["1/4  running tests · 312/3,000, 2 failing · 0:12"]
    assert window.visible_lines == []


def test_session_whose_output_is_shown_has_no_progress_beside_it() -> None:
    window = Window(Look(1, has_progress=True))
    with window.live.show_session("running tests", lambda: "1/2"):
        window.live.write_session_output(b"..")
        window.clock.now += 12
        window.live.refresh()
        assert window.visible_lines == [".."]


def test_progress_is_drawn_twice_a_second() -> None:
    window = Window()
    with window.live.show_work("me"):
        window.live.refresh()
        before = len(window.stream.getvalue())
        window.clock.now += 0.4
        window.live.refresh()
        assert len(window.stream.getvalue()) == before
        window.clock.now += 0.1
        window.live.refresh()
        assert len(window.stream.getvalue()) > before


def test_overlapping_work_keeps_its_own_output_and_time() -> None:
    window = Window()
    with window.live.show_work("PRODUCE") as first:
        window.clock.now += 1
        with window.live.show_work("PREPARE") as second:
            first.write(b"half of ")
            second.write(b"another\n")
            first.write(b"a line\n")
            window.clock.now += 1
            window.live.refresh()
            assert window.visible_lines == ["1/4  PRODUCE · 0:02 · half of a line"]


def test_terminal_that_becomes_narrow_is_left_clean() -> None:
    window = Window(columns=60)
    with window.live.show_work("an agent with a long name · REFINE"):
        window.clock.now += 1
        window.live.refresh()
        frame = window.stream.getvalue()
        window.size = os.terminal_size((30, 24))
        window.live.write("a line")
        after = window.stream.getvalue().removeprefix(frame)
        assert after.startswith("\r\x1b[1A\x1b[Ja line\n"), "its line has become two"
        assert len(after.splitlines()[-1]) < 30


def test_small_or_unknown_terminal_has_only_a_log() -> None:
    window = Window(columns=19)
    live = LiveView(Terminal(), AT_TERMINAL)
    for view in (window.live, live):
        with view.show_work("me"):
            view.write("a line")
    assert window.stream.getvalue() == "a line\n"


def test_progress_can_be_hidden_and_shown_again() -> None:
    window = Window()
    with window.live.show_work("me"):
        window.live.write("a line")
        window.live.hide()
        assert window.visible_lines == ["a line"]
        window.live.write("on")
        assert window.visible_lines == ["a line", "on", "1/4  me · 0:00"]


@pytest.mark.parametrize("is_coloured", [True, False])
def test_no_styles_without_colours(is_coloured: bool) -> None:
    window = Window(Look(is_coloured=is_coloured, has_progress=True))
    with window.live.show_work("me"):
        window.live.write("a line")
    assert ("\x1b[2m" in window.stream.getvalue()) is is_coloured
