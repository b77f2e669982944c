from __future__ import annotations

import io

from pytest_loop.show.live import MOST, Live


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_whole_lines_with_a_prefix_and_no_reminders() -> None:
    stream, clock = io.StringIO(), Clock()
    live = Live(stream, clock=clock)
    with live.work("REFINE by me") as worker:
        worker.heard(b"think")
        worker.heard(b"ing\n\x1b[31mred\x1b[0m\n\nunfinished")
        clock.now += 5
        live.tick()
    assert stream.getvalue() == "REFINE by me ...\n  | thinking\n  | red\n  | unfinished\nREFINE by me took 5.0 s\n"


def test_a_terminal_gets_one_line_that_says_how_long_it_has_been() -> None:
    stream, clock = Terminal(), Clock()
    live = Live(stream, width=24, clock=clock)
    live.tick()
    with live.work("REFINE") as worker:
        clock.now += 0.5
        live.tick()
        clock.now += 2
        live.tick()
        worker.heard(b"a long thought about it\n")
        clock.now += 1
        live.tick()
    assert stream.getvalue().split("\r\x1b[K") == [
        "REFINE ...\n",
        "REFINE 2 s",
        "  | a long thought about it\n",
        "REFINE 4 s: a long thou",
        "REFINE took 3.5 s\n",
    ]


def test_two_at_work_keep_their_own_words_and_times() -> None:
    stream, clock = Terminal(), Clock()
    live = Live(stream, clock=clock)
    with live.work("PRODUCE") as one:
        clock.now += 1
        with live.work("PREPARE") as two:
            one.heard(b"half of ")
            two.heard(b"another\n")
            one.heard(b"a line\n")
            clock.now += 1
            live.tick()
        live.tick()
    assert stream.getvalue().replace("\r\x1b[K", "\n").splitlines() == [
        "PRODUCE ...",
        "PREPARE ...",
        "  | another",
        "  | half of a line",
        "",
        "PRODUCE 2 s: half of a line",
        "PREPARE took 1.0 s",
        "PRODUCE took 2.0 s",
    ]


def test_a_line_without_an_end_is_cut() -> None:
    stream = io.StringIO()
    with Live(stream).work("REFINE") as worker:
        worker.heard(b"x" * 100_000)
        worker.heard(b"y\n")
    assert len(stream.getvalue()) < 2_000


def test_who_never_stops_talking_is_not_shown_for_ever() -> None:
    stream = io.StringIO()
    with Live(stream).work("REFINE") as worker:
        for _ in range(3 * MOST // 1000):
            worker.heard(b"word " * 199 + b"end.\n")
    lines = stream.getvalue().splitlines()
    assert lines[-2] == "  | (it says more than 1 MB; the rest is not shown)"
    assert len(stream.getvalue()) < MOST
