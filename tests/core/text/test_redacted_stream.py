from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.text.redaction import RedactedStream, Redactor

SECRETS = {"A_TOKEN": "first-välue", "B_TOKEN": "another\nline of it"}
PIECES = st.lists(st.sampled_from(["first-välue", "first-", "another", "line of it", "\n", "x", "-", "ü"]), max_size=12)


def heard(*pieces: bytes) -> list[str]:
    said: list[str] = []
    stream = RedactedStream(lambda data: said.append(data.decode()), Redactor(SECRETS))
    for piece in pieces:
        stream(piece)
    stream.end()
    return said


def test_a_secret_in_two_pieces_is_not_heard() -> None:
    assert heard(b"it is first-v\xc3", b"\xa4lue, ye", b"s") == ["it is ", "[A_TOKEN], ye", "s"]


def test_what_can_be_no_secret_is_heard_at_once() -> None:
    assert heard(b".", b"..", b".F.", b" [100%]\n") == [".", "..", ".F.", " [100%]\n"]


def test_what_waits_at_the_end_is_heard() -> None:
    assert heard(b"the first-") == ["the ", "first-"]
    assert heard(b"cut \xc3") == ["cut ", "\ufffd"]
    assert heard(b"") == []


@given(PIECES, st.lists(st.integers(0, 100), max_size=6))
def test_it_does_not_matter_where_the_pieces_end(words: list[str], cuts: list[int]) -> None:
    data = "".join(words).encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert "".join(heard(*pieces)) == Redactor(SECRETS)(data.decode())
