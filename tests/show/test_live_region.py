from __future__ import annotations

import pytest

from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import Limits
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.show.live_region import (
    HEIGHT,
    PLAIN_BARS,
    CurrentWork,
    RunProgress,
    ScoreMark,
    TerminalLook,
    cut_to_width,
    draw_sparkline,
    format_clock,
    measure_width,
    render_region,
)
from tests.show.runs import Told, small

A, B = Phase.A, Phase.B


def lines(told: Told, name: str = "EVALUATE", last: str = "", look: TerminalLook | None = None) -> list[str]:
    standing = RunProgress()
    standing.update(told.state)
    return render_region(standing, CurrentWork(name, 12, last), 83, look or TerminalLook(100))


def test_a_run_that_nobody_has_told_of_has_no_region() -> None:
    assert render_region(RunProgress(), CurrentWork(""), 0, TerminalLook()) == []


def test_the_region_tells_where_the_run_stands_and_what_it_has_used() -> None:
    assert lines(small(), "REFINE by codex", "mending") == [
        "── green ──────────────────────────────────────────────────────────────────────────────────────────",
        "iteration 2/2, phase B, 0:12: REFINE by codex",
        "score ▁|▆ 0.625 of 0.9, elapsed 1:23, cost unknown of 25 USD, 1,200 tokens",
        "  | mending",
    ]


def test_its_height_is_the_same_where_nobody_has_said_anything() -> None:
    found = lines(Told("a"))
    assert found[1:] == [
        "iteration 1/99, phase A, 0:12: EVALUATE",
        "score unknown, elapsed 1:23, cost unknown of 25 USD",
        "",
    ]
    assert len(found) == HEIGHT


def test_limits_are_told_with_what_was_used_of_them() -> None:
    told = Told("a", limits=Limits(usd=2, tokens=5000), max_completed_phase_seconds=600)
    told.judged(["a"], usage={"cost_usd": 0.4214, "tokens": 1234}, seconds=35.4)
    assert "cost 0.421 of 2 USD, 1,234 of 5,000 tokens, 35 of 600 s of steps" in lines(told)[2]


def test_a_void_score_is_said_to_be_so() -> None:
    told = Told("a", "b").judged(["a"]).refined().judged(["a"], void=True)
    assert lines(told)[2].startswith("score ▅x 0.5 of 0.8 (void)")


def test_scores_stay_after_the_run_has_forgotten_its_attempts() -> None:
    told, standing = Told("a", "b"), RunProgress()
    for _ in range(12):
        standing.update(told.judged(["a"]).state)
        told.refined()
    assert "▅" * 12 in render_region(standing, CurrentWork(""), 0, TerminalLook())[2]


def test_a_phase_switch_is_shown_between_scores() -> None:
    assert (
        draw_sparkline([ScoreMark(A, 0), ScoreMark(A, 0.5), ScoreMark(B, 0.5, is_void=True), ScoreMark(B, 1)])
        == "▁▅|x█"
    )
    assert draw_sparkline([ScoreMark(A, 0), ScoreMark(A, 1)], PLAIN_BARS) == "18"


def test_a_terminal_without_such_characters_has_others() -> None:
    assert "".join(lines(small(), look=TerminalLook(80, has_bars=False))).isascii()


@pytest.mark.parametrize("width", [20, 33, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    wide = "日本語のとても長い行 " * 20
    assert all(
        measure_width(line) < width for line in lines(small(), "REFINE by " + "x" * 200, wide, TerminalLook(width))
    )


def test_hidden_words_of_agents_do_nothing_here() -> None:
    assert lines(Told("a"), last="\x1b[2Jgone\x07\u202e")[3] == "  | gone"


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0:00"), (83, "1:23"), (3_700, "1:01:40")])
def test_time_is_told_as_on_a_clock(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


@pytest.mark.parametrize(("text", "width", "left"), [("abc", 2, "ab"), ("日本", 3, "日"), ("e\u0301e", 1, "e\u0301")])
def test_a_text_is_cut_by_cells(text: str, width: int, left: str) -> None:
    assert cut_to_width(text, width) == left


def test_it_is_known_when_another_step_begins() -> None:
    told, standing = Told("a"), RunProgress()
    assert standing.update(told.state)
    assert not standing.update(told.state)
    assert standing.update(told.judged(["a"]).state)
    assert not standing.update(told.happens(Kind.STOP_REQUESTED, reason="x").state)
