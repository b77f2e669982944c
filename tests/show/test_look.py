from __future__ import annotations

import io

import pytest

from pytest_loop.show.look import Look, choose_look, cut_to_width, format_clock, measure_width


class Stream(io.StringIO):
    def __init__(self, encoding: str = "utf-8", *, is_terminal: bool = True) -> None:
        super().__init__()
        self._encoding, self._is_terminal = encoding, is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("environment", "colour", "is_terminal", "expected"),
    [
        ({"TERM": "xterm"}, "auto", True, True),
        ({}, "auto", False, False),
        ({}, "yes", False, True),
        ({}, "no", True, False),
        ({"NO_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": "1", "GITHUB_ACTIONS": "true"}, "auto", False, False),
        ({"NO_COLOR": ""}, "auto", True, True),
        ({"PY_COLORS": "0"}, "auto", True, False),
        ({"PY_COLORS": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "1"}, "auto", False, True),
        ({"TERM": "dumb"}, "auto", True, False),
        ({"CI": "true"}, "auto", False, False),
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, "auto", False, True),
    ],
)
def test_colours_depend_on_option_environment_and_stream(
    environment: dict[str, str], colour: str, is_terminal: bool, expected: bool
) -> None:
    look = choose_look(Stream(is_terminal=is_terminal), environment, colour=colour)
    assert look.is_coloured is expected


@pytest.mark.parametrize(
    ("environment", "verbosity", "is_terminal", "expected"),
    [
        ({}, 0, True, True),
        ({}, -1, True, True),
        ({}, -2, True, False),
        ({}, 0, False, False),
        ({"CI": "true"}, 0, True, False),
        ({"TERM": "dumb"}, 0, True, False),
    ],
)
def test_progress_is_for_people_at_a_terminal(
    environment: dict[str, str], verbosity: int, is_terminal: bool, expected: bool
) -> None:
    assert choose_look(Stream(is_terminal=is_terminal), environment, verbosity).has_progress is expected


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", True), ("ascii", False), ("no such encoding", False)])
def test_symbols_depend_on_the_encoding(encoding: str, expected: bool) -> None:
    assert choose_look(Stream(encoding), {}).has_symbols is expected


def test_texts_are_wrapped_at_words_and_parts() -> None:
    look = Look(width=40, wraps=True)
    assert look.wrap("one two three four five six seven eight nine", 2) == [
        "one two three four five six seven eight",
        "  nine",
    ]
    assert look.wrap_parts("fix until green", "6 tests, 3 failing", "", "undo: restore 0") == [
        "fix until green · 6 tests, 3 failing ·",
        "  undo: restore 0",
    ]
    assert look.wrap("") == [""]
    assert Look(width=40).wrap("one two three four five six seven eight nine") == [
        "one two three four five six seven eight nine"
    ], "a log is searched for texts"


def test_colours_do_not_count_as_width() -> None:
    look = Look(width=40, is_coloured=True, wraps=True)
    text = look.paint("one two three", "red") + " four five six seven eight"
    assert look.wrap(text) == [text]
    assert Look().paint("red", "red") == "red"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (65.9, "1:05"), (3725, "1:02:05")])
def test_clock(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "abc"), ("日本", 3, "日"), ("e\u0301x", 2, "e\u0301x")],
)
def test_text_is_cut_to_cells(text: str, width: int, expected: str) -> None:
    assert cut_to_width(text, width) == expected
    assert measure_width(expected) <= width
