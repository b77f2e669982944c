"""Messages with files between processes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from pytest_loop.session.warm.messages import receive_message, send_message

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with sender, receiver:
        yield sender, receiver


def list_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_messages_of_any_length_arrive_with_their_files(pair: Pair) -> None:
    read_end, write_end = os.pipe()
    send_message(pair[0], {"text": "x" * 1_000_000}, [write_end])
    message, files = receive_message(pair[1])
    assert len(message["text"]) == 1_000_000
    os.write(files[0], b"hello")
    assert os.read(read_end, 5) == b"hello"
    for descriptor in (read_end, write_end, *files):
        os.close(descriptor)


def test_a_closed_connection_is_the_end(pair: Pair) -> None:
    pair[0].close()
    with pytest.raises(EOFError):
        receive_message(pair[1])
    pair[1].close()
    with pytest.raises(EOFError):
        receive_message(pair[1])


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"7", b"\xff"])
def test_an_invalid_message_is_the_end_and_leaves_no_file_open(pair: Pair, text: bytes) -> None:
    before = list_descriptors()
    body = os.memfd_create("nonsense")
    os.write(body, text)
    socket.send_fds(pair[0], [b"\n"], [body, body])
    os.close(body)
    with pytest.raises(EOFError):
        receive_message(pair[1])
    assert list_descriptors() == before


def test_a_message_without_a_file_is_the_end(pair: Pair) -> None:
    pair[0].send(b"hello")
    with pytest.raises(EOFError):
        receive_message(pair[1])
