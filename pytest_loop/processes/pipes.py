"""Bytes to and from another process: both directions at once, and no more kept than somebody wants."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

_PIECE = 1 << 16


class Pipes:
    """Bytes to and from a process, in both directions at once, so that neither side waits for the other."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._unsent = memoryview(b"")
        self._sent: Callable[[], None] | None = None

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing more to say and nothing more to hear."""
        return not self._selector.get_map()

    @property
    def is_reading(self) -> bool:
        """Whether somebody at the other end can still say something."""
        return any(key.data is not None for key in self._selector.get_map().values())

    def read_from(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, take)

    def write_to(self, descriptor: int, data: bytes, sent: Callable[[], None] | None = None) -> None:
        """`sent` is called when all is sent, or when nobody reads it any more."""
        os.set_blocking(descriptor, False)
        self._unsent, self._sent = memoryview(data), sent
        self._selector.register(descriptor, selectors.EVENT_WRITE, None)

    def transfer(self, wait: float) -> bool:
        """Pass on what is there; wait for it no longer than that. Says whether there was anything."""
        ready = self._selector.select(wait)
        for key, _ in ready:
            going_on = self._tell(key.fd) if key.data is None else _take(key.fd, key.data)
            if not going_on:
                self._selector.unregister(key.fd)
                if key.data is None and self._sent is not None:
                    self._sent()
        return bool(ready)

    def _tell(self, descriptor: int) -> bool:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:_PIECE]) :]
        except BrokenPipeError:
            return False
        return len(self._unsent) > 0


def _take(descriptor: int, take: Callable[[bytes], None]) -> bool:
    data = os.read(descriptor, _PIECE)
    if data:
        take(data)
    return bool(data)


class BoundedOutput:
    """Keeps the first and the last half of `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.half = limit // 2
        self.head = bytearray()
        self.tail = bytearray()
        self.lost_bytes = 0

    def add(self, data: bytes) -> None:
        room = self.half - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > 2 * self.half:
            self.trim()

    def trim(self) -> None:
        extra = max(0, len(self.tail) - self.half)
        self.lost_bytes += extra
        del self.tail[:extra]

    def decode(self) -> str:
        self.trim()
        gap = f"\n[... {self.lost_bytes:,} bytes left out ...]\n".encode() if self.lost_bytes else b""
        return (bytes(self.head) + gap + bytes(self.tail)).decode("utf-8", "replace")
