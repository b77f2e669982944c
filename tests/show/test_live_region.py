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
from tests.show.runs import RunStory, build_small_run

A, B = Phase.A, Phase.B


def render_lines(
    story: RunStory, name: str = "EVALUATE", last: str = "", look: TerminalLook | None = None
) -> list[str]:
    standing = RunProgress()
    standing.update(story.state)
    return render_region(standing, CurrentWork(name, 12, last), 83, look or TerminalLook(100))


def test_region_is_empty_without_a_state() -> None:
    assert render_region(RunProgress(), CurrentWork(""), 0, TerminalLook()) == []


def test_region_shows_progress_and_usage() -> None:
    assert render_lines(build_small_run(), "REFINE by codex", "mending") == [
        "── green ──────────────────────────────────────────────────────────────────────────────────────────",
        "iteration 2/2, phase B, 0:12: REFINE by codex",
        "score ▁|▆ 0.625 of 0.9, elapsed 1:23, cost unknown of 25 USD, 1,200 tokens",
        "  | mending",
    ]


def test_height_is_the_same_without_output() -> None:
    lines = render_lines(RunStory("a"))
    assert lines[1:] == [
        "iteration 1/99, phase A, 0:12: EVALUATE",
        "score unknown, elapsed 1:23, cost unknown of 25 USD",
        "",
    ]
    assert len(lines) == HEIGHT


def test_limits_are_shown_with_their_usage() -> None:
    story = RunStory("a", limits=Limits(usd=2, tokens=5000), max_completed_phase_seconds=600)
    story.evaluate(["a"], usage={"cost_usd": 0.4214, "tokens": 1234}, seconds=35.4)
    assert "cost 0.421 of 2 USD, 1,234 of 5,000 tokens, 35 of 600 s of steps" in render_lines(story)[2]


def test_void_score_is_marked() -> None:
    story = RunStory("a", "b").evaluate(["a"]).refine().evaluate(["a"], void=True)
    assert render_lines(story)[2].startswith("score ▅x 0.5 of 0.8 (void)")


def test_scores_stay_after_attempts_are_dropped_from_the_state() -> None:
    story, standing = RunStory("a", "b"), RunProgress()
    for _ in range(12):
        standing.update(story.evaluate(["a"]).state)
        story.refine()
    assert "▅" * 12 in render_region(standing, CurrentWork(""), 0, TerminalLook())[2]


def test_phase_switch_is_marked_between_scores() -> None:
    assert (
        draw_sparkline([ScoreMark(A, 0), ScoreMark(A, 0.5), ScoreMark(B, 0.5, is_void=True), ScoreMark(B, 1)])
        == "▁▅|x█"
    )
    assert draw_sparkline([ScoreMark(A, 0), ScoreMark(A, 1)], PLAIN_BARS) == "18"


def test_terminal_without_bars_shows_digits() -> None:
    assert "".join(render_lines(build_small_run(), look=TerminalLook(80, has_bars=False))).isascii()


@pytest.mark.parametrize("width", [20, 33, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    wide = "日本語のとても長い行 " * 20
    assert all(
        measure_width(line) < width
        for line in render_lines(build_small_run(), "REFINE by " + "x" * 200, wide, TerminalLook(width))
    )


def test_control_characters_of_agents_are_removed() -> None:
    assert render_lines(RunStory("a"), last="\x1b[2Jgone\x07\u202e")[3] == "  | gone"


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0:00"), (83, "1:23"), (3_700, "1:01:40")])
def test_duration_is_formatted_like_a_clock(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


@pytest.mark.parametrize(
    ("text", "width", "expected"), [("abc", 2, "ab"), ("日本", 3, "日"), ("e\u0301e", 1, "e\u0301")]
)
def test_text_is_cut_by_terminal_cells(text: str, width: int, expected: str) -> None:
    assert cut_to_width(text, width) == expected


def test_update_returns_whether_another_step_has_started() -> None:
    story, standing = RunStory("a"), RunProgress()
    assert standing.update(story.state)
    assert not standing.update(story.state)
    assert standing.update(story.evaluate(["a"]).state)
    assert not standing.update(story.add(Kind.STOP_REQUESTED, reason="x").state)
