"""Messages between processes of one machine, with open files beside them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_MAX_FILES = 8


def send_message(connection: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send a message of any length: its text is passed as a file in memory."""
    body = os.memfd_create("pytest-loop")
    try:
        with os.fdopen(os.dup(body), "wb") as file:
            file.write(json.dumps(message).encode())
        socket.send_fds(connection, [b"\n"], [body, *files])
    finally:
        os.close(body)


def receive_message(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and its files; raise `EOFError` at the end, or after a message that makes no sense."""
    try:
        data, files, _, _ = socket.recv_fds(connection, 1, _MAX_FILES, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        data, files = b"", []
    if not data or not files:
        raise EOFError
    with os.fdopen(files[0], "rb") as file:
        file.seek(0)
        text = file.read()
    try:
        return dict(json.loads(text)), files[1:]
    except (TypeError, ValueError):
        close_files(files[1:])
        raise EOFError from None


def close_files(descriptors: Sequence[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)
