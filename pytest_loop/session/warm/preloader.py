"""Load installed modules that sessions imported, while the fork server is idle."""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import ModuleType

from pytest_loop.session.locations import Locations
from pytest_loop.session.warm.import_trial import PATCHING_PACKAGES, ImportTrace, trace_import
from pytest_loop.session.warm.module_store import ModuleStore

_MAX_TRIAL_SECONDS = 20.0
_IDLE_SECONDS = 1.0
_MAX_REQUESTS = 16


@dataclass
class Preloader:
    """Load modules installed before the time `installed_before`, each after a trial in a forked process.

    A request lists the modules that one session or worker imported, in order.
    """

    locations: Locations
    installed_before: float
    store: ModuleStore = field(default_factory=ModuleStore)
    _requests: list[list[str]] = field(default_factory=list)
    _refused: set[str] = field(default_factory=set)

    def add_request(self, names: Iterable[object]) -> None:
        request = list(dict.fromkeys(map(str, names)))
        if request and PATCHING_PACKAGES.isdisjoint(request):
            self._requests = [*self._requests, request][-_MAX_REQUESTS:]

    def load_while_idle(self, driver: socket.socket, end_children: Callable[[], None]) -> list[ModuleType]:
        """Load requested modules until the driver sends a message; return those that are new."""
        modules: list[ModuleType] = []
        if not self._requests or _has_message(driver, _IDLE_SECONDS):
            return modules
        with _use_private_bytecode():
            while self._requests and not _has_message(driver):
                modules += self._load_request(self._requests[0], driver, end_children)
        gc.collect()
        gc.freeze()
        return modules

    def _load_request(
        self, request: list[str], driver: socket.socket, end_children: Callable[[], None]
    ) -> Iterator[ModuleType]:
        """Load the modules of a request; drop it once all are loaded or refused."""
        covered: set[str] = set()
        for name in request:
            if name not in covered and name not in self.store.traces and not self._is_refused(name):
                trace = self._try_import(name, driver)
                end_children()
                if trace is not None:
                    yield from self.store.load(trace)
                elif not _has_message(driver):
                    self._refused.add(name)
                if _has_message(driver):
                    return
            if name in self.store.traces:
                covered.update(self.store.traces[name].modules)
        self._requests.remove(request)

    def _is_refused(self, name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[:end]) in self._refused for end in range(1, len(parts) + 1))

    def _try_import(self, name: str, driver: socket.socket) -> ImportTrace | None:
        """Trace an import in a forked process; give up once the driver sends a message."""
        read_end, write_end = os.pipe()
        if os.fork() == 0:
            with suppress(BaseException):
                output = os.memfd_create("pytest-loop")
                for descriptor in (1, 2):
                    os.dup2(output, descriptor)
                trace = trace_import(name, self.locations, self.installed_before)
                os.write(write_end, json.dumps(asdict(trace) if trace else None).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            ready = select.select([read_end, driver.fileno()], [], [], _MAX_TRIAL_SECONDS)[0]
            data = json.loads((pipe.read() if read_end in ready else b"") or b"null")
        return ImportTrace(**data) if data else None


@contextmanager
def _use_private_bytecode() -> Iterator[None]:
    """Compile to a private folder: a session may have left forged bytecode in the usual one."""
    before = sys.pycache_prefix, sys.dont_write_bytecode
    with tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True) as folder:
        sys.pycache_prefix, sys.dont_write_bytecode = folder, False
        try:
            yield
        finally:
            sys.pycache_prefix, sys.dont_write_bytecode = before


def _has_message(driver: socket.socket, timeout: float = 0.0) -> bool:
    return bool(select.select([driver], [], [], timeout)[0])
