"""Transfer bytes to and from a process in both directions at once, and keep a bounded part of them."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

_CHUNK_BYTES = 1 << 16


class Pipes:
    """The pipes of a process, read and written without blocking either side."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._unsent = memoryview(b"")
        self._on_sent: Callable[[], None] | None = None

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing left to read or write."""
        return not self._selector.get_map()

    @property
    def is_reading(self) -> bool:
        """Whether a pipe to read from is still open at its other end."""
        return any(key.data is not None for key in self._selector.get_map().values())

    def read_from(self, descriptor: int, on_data: Callable[[bytes], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, on_data)

    def write_to(self, descriptor: int, data: bytes, on_sent: Callable[[], None] | None = None) -> None:
        """Write to one pipe; `on_sent` is called when all is written or the reader has closed it."""
        os.set_blocking(descriptor, False)
        self._unsent, self._on_sent = memoryview(data), on_sent
        self._selector.register(descriptor, selectors.EVENT_WRITE, None)

    def transfer(self, timeout: float) -> bool:
        """Transfer what is ready, waiting at most `timeout` seconds for it; return whether anything was."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            is_open = self._write(key.fd) if key.data is None else _read(key.fd, key.data)
            if not is_open:
                self._selector.unregister(key.fd)
                if key.data is None and self._on_sent is not None:
                    self._on_sent()
        return bool(ready)

    def _write(self, descriptor: int) -> bool:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:_CHUNK_BYTES]) :]
        except BrokenPipeError:
            return False
        return len(self._unsent) > 0


def _read(descriptor: int, on_data: Callable[[bytes], None]) -> bool:
    data = os.read(descriptor, _CHUNK_BYTES)
    if data:
        on_data(data)
    return bool(data)


class BoundedOutput:
    """The start and the end of an output: all of it up to `limit` bytes, else half of the limit from each."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.lost_bytes = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half:
            self._trim()

    def decode(self) -> str:
        self._trim()
        gap = f"\n[... {self.lost_bytes:,} bytes left out ...]\n".encode() if self.lost_bytes else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode("utf-8", "replace")

    def _trim(self) -> None:
        excess = max(0, len(self._tail) - self._half)
        self.lost_bytes += excess
        del self._tail[:excess]
