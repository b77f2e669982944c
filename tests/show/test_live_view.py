from __future__ import annotations

import io
import os

import pytest

from pytest_loop.core.text.terminal_emulation import render_visible_text
from pytest_loop.show.live_view import MAX_BYTES, LiveView, OutputStyle, choose_style
from tests.show.runs import RunStory

RULES = ("a.x.y", "a.x.z")


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

    def __init__(self, style: OutputStyle | None = None, columns: int = 60, lines: int = 24) -> None:
        self.stream, self.clock = Terminal(), Clock()
        self.size = os.terminal_size((columns, lines))
        self.live = LiveView(self.stream, style, clock=self.clock, get_size=lambda: self.size)

    @property
    def visible_lines(self) -> list[str]:
        return render_visible_text(self.stream.getvalue()).splitlines()


# -- a log


def test_log_gets_complete_lines_with_a_prefix() -> None:
    stream, clock = io.StringIO(), Clock()
    live = LiveView(stream, clock=clock)
    with live.show_work("REFINE by me") as worker:
        worker.write(b"think")
        worker.write(b"ing\n\x1b[31mred\x1b[0m\n\nunfinished")
        clock.now += 5
        live.refresh()
    assert stream.getvalue() == "REFINE by me ...\n  | thinking\n  | red\n  | unfinished\nREFINE by me took 5.0 s\n"


def test_log_gets_session_output_at_once() -> None:
    stream = io.StringIO()
    live = LiveView(stream)
    live.update(RunStory(*RULES).evaluate(["a.x.y"]).state)
    live.write_session_output(b"..F")
    assert stream.getvalue() == "..F"
    live.write_session_output(b".\n")
    live.close()
    assert stream.getvalue() == "..F.\n"


@pytest.mark.parametrize(
    ("verbosity", "style"),
    [(-1, "..F.\nIteration 1/4\n  1. a.x.y\nREFINE by me took 0.0 s\n"), (-2, "Iteration 1/4\n")],
    ids=["-q", "-qq"],
)
def test_verbosity_decides_what_is_printed(verbosity: int, style: str) -> None:
    stream = io.StringIO()
    live = LiveView(stream, OutputStyle(verbosity), clock=Clock())
    with live.show_work("REFINE by me") as worker:
        worker.write(b"thinking\n")
        live.write_session_output(b"..F.\n")
        live.write("Iteration 1/4")
        live.explain("  1. a.x.y")
    assert stream.getvalue() == style


def test_line_without_an_end_is_split() -> None:
    stream = io.StringIO()
    with LiveView(stream).show_work("REFINE") as worker:
        worker.write(b"x" * 100_000)
        worker.write(b"y\n")
    assert len(stream.getvalue()) < 2_000


def test_output_of_an_agent_is_limited() -> None:
    stream = io.StringIO()
    with LiveView(stream).show_work("REFINE") as worker:
        for _ in range(3 * MAX_BYTES // 1000):
            worker.write(b"word " * 199 + b"end.\n")
    lines = stream.getvalue().splitlines()
    assert lines[-2] == "  | (it says more than 1 MB; the rest is not shown)"
    assert len(stream.getvalue()) < MAX_BYTES


# -- a terminal


def test_terminal_has_a_fixed_region_below_the_log() -> None:
    window = Window()
    window.live.update(RunStory(*RULES).evaluate(["a.x.y"]).state)
    with window.live.show_work("REFINE by me") as worker:
        worker.write(b"thinking\nabout it\n")
        window.clock.now += 65
        window.live.refresh()
        assert window.visible_lines == [
            "REFINE by me ...",
            "  | thinking",
            "  | about it",
            "── green ──────────────────────────────────────────────────",
            "iteration 1/99, phase A, 1:05: REFINE by me",
            "score ▅ 0.5 of 0.8, elapsed 1:05, cost unknown of 25 USD",
            "  | about it",
        ]
    window.live.close()
    assert window.visible_lines == ["REFINE by me ...", "  | thinking", "  | about it", "REFINE by me took 65.0 s"]


def test_region_is_drawn_once_a_second() -> None:
    window = Window()
    window.live.update(RunStory(*RULES).state)
    before = len(window.stream.getvalue())
    window.clock.now += 0.5
    window.live.refresh()
    assert len(window.stream.getvalue()) == before
    window.clock.now += 0.5
    window.live.refresh()
    assert len(window.stream.getvalue()) > before


def test_unfinished_line_of_a_session_is_shown_in_the_region() -> None:
    window = Window()
    window.live.update(RunStory(*RULES).state)
    window.live.write_session_output(b"two\rtests\n\x1b[32m..\x1b[0m\x1b[2J")
    window.clock.now += 1
    window.live.refresh()
    assert window.visible_lines[0] == "tests"
    assert window.visible_lines[-1] == "  | .."
    window.live.write_session_output(b".\n")
    assert window.visible_lines[:2] == ["tests", "..."]
    assert "\x1b[32m..\x1b[0m." in window.stream.getvalue(), "colours stay"
    window.live.close()
    assert window.visible_lines == ["tests", "..."]


def test_overlapping_work_keeps_its_own_output_and_time() -> None:
    window = Window()
    window.live.update(RunStory(*RULES).state)
    with window.live.show_work("PRODUCE") as first:
        window.clock.now += 1
        with window.live.show_work("PREPARE") as second:
            first.write(b"half of ")
            second.write(b"another\n")
            first.write(b"a line\n")
            window.clock.now += 1
            window.live.refresh()
            assert window.visible_lines[-3] == "iteration 1/99, phase A, 0:02: PRODUCE"
            assert window.visible_lines[-1] == "  | half of a line"
    window.live.close()
    assert window.visible_lines == [
        "PRODUCE ...",
        "PREPARE ...",
        "  | another",
        "  | half of a line",
        "PREPARE took 1.0 s",
        "PRODUCE took 2.0 s",
    ]


def test_terminal_that_becomes_narrow_is_left_clean() -> None:
    window = Window(columns=60)
    window.live.update(RunStory(*RULES).evaluate(["a.x.y"]).state)
    frame = window.stream.getvalue()
    window.size = os.terminal_size((30, 24))
    window.live.write("a line")
    after = window.stream.getvalue().removeprefix(frame)
    assert after.startswith("\r\x1b[6A\x1b[Ja line\n"), "three of the four lines have become two"
    drawn = [len(line) for line in after.splitlines()[1:]]
    assert max(drawn) < 30


@pytest.mark.parametrize(("columns", "lines"), [(60, 11), (19, 24)])
def test_small_terminal_has_only_a_log(columns: int, lines: int) -> None:
    window = Window(columns=columns, lines=lines)
    window.live.update(RunStory(*RULES).state)
    window.live.write("a line")
    assert window.stream.getvalue() == "a line\n"


def test_terminal_of_unknown_size_has_only_a_log() -> None:
    stream = Terminal()
    live = LiveView(stream)
    live.update(RunStory(*RULES).state)
    live.write("a line")
    assert stream.getvalue() == "a line\n"


def test_region_can_be_hidden_and_shown_again() -> None:
    window = Window()
    window.live.update(RunStory(*RULES).state)
    window.live.write_session_output(b"half")
    window.live.hide()
    assert window.visible_lines == ["half"]
    window.live.write("on")
    assert window.visible_lines[:2] == ["half", "on"]
    assert len(window.visible_lines) > 2


@pytest.mark.parametrize(
    ("environment", "verbosity", "colour", "expected"),
    [
        ({"TERM": "xterm"}, 0, "auto", OutputStyle(0, True, True)),
        ({}, -1, "auto", OutputStyle(-1, True, True)),
        ({}, -2, "auto", OutputStyle(-2, True, False)),
        ({}, 1, "yes", OutputStyle(1, True, True)),
        ({}, 0, "no", OutputStyle(0, False, True)),
        ({"NO_COLOR": "1"}, 0, "auto", OutputStyle(0, False, True)),
        ({"NO_COLOR": ""}, 0, "auto", OutputStyle(0, True, True)),
        ({"PY_COLORS": "0"}, 0, "auto", OutputStyle(0, False, True)),
        ({"TERM": "dumb"}, 0, "auto", OutputStyle(0, True, False)),
        ({"CI": "true"}, 0, "auto", OutputStyle(0, True, False)),
    ],
)
def test_style_depends_on_options_and_environment(
    environment: dict[str, str], verbosity: int, colour: str, expected: OutputStyle
) -> None:
    assert choose_style(environment, verbosity, colour) == expected


@pytest.mark.parametrize("is_coloured", [True, False])
def test_no_styles_without_colours(is_coloured: bool) -> None:
    window = Window(OutputStyle(is_coloured=is_coloured))
    window.live.update(RunStory(*RULES).state)
    assert ("\x1b[1m" in window.stream.getvalue()) is is_coloured


@pytest.mark.parametrize("encoding", ["ascii", "no such encoding"])
def test_stream_that_cannot_encode_bars_gets_digits(encoding: str) -> None:
    window = Window()
    window.stream.encoding = encoding
    window.live.update(RunStory(*RULES).evaluate(["a.x.y"]).state)
    assert window.visible_lines[0].startswith("-- green ---")
    assert "score 5 0.5 of 0.8" in window.visible_lines[2]
