"""Control forked processes from their parent, and make them start and end like new interpreters."""

from __future__ import annotations

import atexit
import importlib
import os
import random
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any, NoReturn, TypeVar

from pytest_loop.session.locations import Locations

Self = TypeVar("Self", bound="ForkedProcess")


class ForkedProcess:
    """Minimal Popen interface for forked sessions; a subclass defines how to wait for them."""

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def __init__(self, pid: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = os.fdopen(stdout, "rb", buffering=0)
        self.stderr = os.fdopen(stderr, "rb", buffering=0)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def connect_streams(descriptors: Sequence[int | None]) -> None:
    """Make these descriptors standard input, output and error; None keeps the current stream."""
    for number, descriptor in enumerate(descriptors):
        if descriptor is not None:
            os.dup2(descriptor, number)
            os.close(descriptor)


def reset_process(variables: Mapping[str, str], locations: Locations | None) -> None:
    """Reset what a new interpreter sets at its start; without `locations`, forget all cached import paths."""
    os.environ.update(variables)
    sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX") or None
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    random.seed()
    modules: Mapping[str, Any] = sys.modules
    if "numpy.random" in modules:
        modules["numpy.random"].seed()
    if "pytest_randomly" in modules:  # this plugin draws its seed when it is imported
        modules["pytest_randomly"].default_seed = random.getrandbits(32)
    for path in list(sys.path_importer_cache):
        if locations is None or locations.is_in_project(path):
            del sys.path_importer_cache[path]
    importlib.invalidate_caches()


def exit_process(code: int) -> NoReturn:
    """Exit without tearing down the loaded modules, unless other threads still run."""
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
