from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from pytest_loop.session.warm.messages import receive_message, send_message

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield one, other


def opened() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_messages_of_any_length_arrive_with_their_files(ends: Ends) -> None:
    ours, theirs = os.pipe()
    send_message(ends[0], {"text": "x" * 1_000_000}, [theirs])
    message, files = receive_message(ends[1])
    assert len(message["text"]) == 1_000_000
    os.write(files[0], b"hello")
    assert os.read(ours, 5) == b"hello"
    for descriptor in (ours, theirs, *files):
        os.close(descriptor)


def test_the_end_is_an_end(ends: Ends) -> None:
    ends[0].close()
    with pytest.raises(EOFError):
        receive_message(ends[1])
    ends[1].close()
    with pytest.raises(EOFError):
        receive_message(ends[1])


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"7", b"\xff"])
def test_nonsense_is_an_end_and_leaves_nothing_open(ends: Ends, text: bytes) -> None:
    before = opened()
    body = os.memfd_create("nonsense")
    os.write(body, text)
    socket.send_fds(ends[0], [b"\n"], [body, body])
    os.close(body)
    with pytest.raises(EOFError):
        receive_message(ends[1])
    assert opened() == before


def test_a_message_without_a_file_is_an_end(ends: Ends) -> None:
    ends[0].send(b"hello")
    with pytest.raises(EOFError):
        receive_message(ends[1])
