"""A forked process: as if Python had just started, and gone without taking apart what the server has loaded."""

from __future__ import annotations

import atexit
import importlib
import os
import random
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pytest_loop.session.locations import Places


def connect(files: Sequence[int | None]) -> None:
    """Standard input, output and error."""
    for place, descriptor in enumerate(files):
        if descriptor is not None:
            os.dup2(descriptor, place)
            os.close(descriptor)


def become(variables: Mapping[str, str], places: Places | None) -> None:
    """Nothing here is older than this session, but modules that are no part of the project (`places`: all are)."""
    os.environ.update(variables)
    sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX") or None
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    random.seed()
    loaded: Mapping[str, Any] = sys.modules
    if "numpy.random" in loaded:
        loaded["numpy.random"].seed()
    if "pytest_randomly" in loaded:  # it draws its seed when it is imported
        loaded["pytest_randomly"].default_seed = random.getrandbits(32)
    for path in list(sys.path_importer_cache):
        if places is None or places.is_own(path):
            del sys.path_importer_cache[path]
    importlib.invalidate_caches()


def is_installed(name: str, places: Places) -> bool:
    """Whether a module that is loaded here belongs to the interpreter or its environment."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    origin = getattr(spec, "origin", None)
    return isinstance(origin, str) and (origin in ("built-in", "frozen") or places.is_installed(origin))


def end(code: int) -> NoReturn:
    """Do what Python does at its end, as long as nobody can notice what is left out."""
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
