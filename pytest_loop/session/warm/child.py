"""As much of a `Popen` as a session needs that was forked, and not started."""

from __future__ import annotations

import os
from typing import IO, TypeVar

Own = TypeVar("Own", bound="Likeness")


class Likeness:
    """A process with its streams; how it is waited for is up to who forked it."""

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def __init__(self, pid: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = os.fdopen(stdout, "rb", buffering=0)
        self.stderr = os.fdopen(stderr, "rb", buffering=0)

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
