"""Messages between processes of one machine, with open files beside them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_MOST = 8


def send(wire: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """The text travels as a file in memory, so that it may be of any length."""
    body = os.memfd_create("pytest-loop")
    try:
        with os.fdopen(os.dup(body), "wb") as file:
            file.write(json.dumps(message).encode())
        socket.send_fds(wire, [b"\n"], [body, *files])
    finally:
        os.close(body)


def receive(wire: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and the files that came with it; raises `EOFError` where nothing sensible can follow."""
    try:
        said, files, _, _ = socket.recv_fds(wire, 1, _MOST, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        said, files = b"", []
    if not said or not files:
        raise EOFError
    with os.fdopen(files[0], "rb") as file:
        file.seek(0)
        text = file.read()
    try:
        return dict(json.loads(text)), files[1:]
    except (TypeError, ValueError):
        for other in files[1:]:
            os.close(other)
        raise EOFError from None  # whoever says such things is not heard any more
