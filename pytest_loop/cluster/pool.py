"""Workers behind an `Executor`: those of a Dask scheduler, or processes of this machine."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from pytest_loop.cluster.worker import ignore_interrupts
from pytest_loop.errors import LoopError

_CONNECT_SECONDS = 10
_LOCAL = re.compile(r"local:([1-9]\d{0,3})")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss)://\S+")


class ClusterError(LoopError):
    """The workers cannot be used; the text says why."""


@dataclass
class Pool:
    """An executor, the number of its workers, and how to end it."""

    executor: Executor
    size: int
    close: Callable[[], None] = field(repr=False)


def open_pool(address: str) -> Pool:
    """Connect to workers; raise `ClusterError` if there are none."""
    if match := _LOCAL.fullmatch(address):
        size = int(match[1])
        executor = ProcessPoolExecutor(size, mp_context=get_context("spawn"), initializer=ignore_interrupts)
        return Pool(executor, size, lambda: _end_processes(executor))
    if not _ADDRESS.fullmatch(address):
        raise ClusterError(
            f"--loop-cluster: expected tcp://HOST:PORT of a Dask scheduler or local:N, found {address!r}"
        )
    return _connect(address)


def _connect(address: str) -> Pool:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("--loop-cluster needs Dask: pip install 'pytest-agent-loop[cluster]'") from None
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        size = len(client.scheduler_info(n_workers=-1)["workers"])
    except Exception as error:
        raise ClusterError(f"--loop-cluster: cannot connect to {address}: {error or type(error).__name__}") from None
    if size == 0:
        client.close()
        raise ClusterError(f"--loop-cluster: {address} has no workers: start some with dask worker {address}")
    return Pool(client.get_executor(pure=False, retries=2), size, lambda: _disconnect(client))


def _disconnect(client: Any) -> None:
    with suppress(Exception):
        client.close(timeout=_CONNECT_SECONDS)


def _end_processes(executor: ProcessPoolExecutor) -> None:
    """End the processes of a pool, also those that still judge."""
    processes = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
