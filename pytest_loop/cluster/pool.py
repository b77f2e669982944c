"""Workers behind an `Executor`: those of a Dask scheduler, or processes of this machine."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_loop.cluster.worker import ask_worker, end_worker, judge_shard, start_worker
from pytest_loop.errors import LoopError

_CONNECT_SECONDS = 10
_ANSWER_SECONDS = 10
_CLOSE_SECONDS = 3
_POLL_SECONDS = 0.2
_LOCAL = re.compile(r"local:([1-9]\d{0,3})")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss)://\S+")


class ClusterError(LoopError):
    """The workers cannot be used; the text says why."""


@dataclass(frozen=True)
class Slot:
    """A place for one shard at a time, at the worker with this name; a worker of this machine has no name."""

    name: str
    executor: Executor


@dataclass
class Pool:
    """Workers. `list_slots` returns a slot for each shard that can be judged now, or raises an error without them."""

    list_slots: Callable[[], list[Slot]]
    close: Callable[[], None]


def open_pool(address: str, root: str) -> Pool:
    """Connect to workers for the project at `root`; raise `ClusterError` if there are none."""
    if match := _LOCAL.fullmatch(address):
        size = int(match[1])
        executor = ProcessExecutor(size, root)
        return Pool(lambda: [Slot("", executor)] * size, executor.close)
    if address.startswith("ssh:"):
        return _start_hosts(Path(address.removeprefix("ssh:")))
    if not _ADDRESS.fullmatch(address):
        raise ClusterError(
            f"--loop-cluster: expected tcp://HOST:PORT of a Dask scheduler, ssh:FILE or local:N, found {address!r}"
        )
    return _connect(address)


def _start_hosts(path: Path) -> Pool:
    """Start workers over SSH on the hosts of a file, and a scheduler on the first; a line is HOST or HOST PYTHON."""
    try:
        lines = [line.partition("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(f"--loop-cluster: cannot read the hosts in {path}: {error}") from None
    hosts = [(words[0], words[1] if words[1:] else sys.executable) for words in lines if words]
    if not hosts:
        raise ClusterError(f"--loop-cluster: {path} names no host: write one on each line")
    names, interpreters = zip(hosts[0], *hosts, strict=True)
    try:
        cluster = _import_dask().SSHCluster(
            [*names],
            connect_options={"connect_timeout": _CONNECT_SECONDS},
            scheduler_options={"port": 0, "dashboard": False},
            remote_python=[*interpreters],
        )
    except Exception as error:
        text = f"{error or type(error).__name__}"
        raise ClusterError(f"--loop-cluster: cannot start workers on the hosts in {path}: {text}") from None
    try:
        pool = _connect(cluster.scheduler_address)
    except ClusterError:
        cluster.close()
        raise
    close = pool.close

    def close_hosts() -> None:
        close()
        with suppress(Exception):
            cluster.close(timeout=_CONNECT_SECONDS)

    return replace(pool, close=close_hosts)


def _import_dask() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("--loop-cluster needs Dask: pip install 'pytest-agent-loop[cluster]'") from None


def _connect(address: str) -> Pool:
    distributed = _import_dask()
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        raise ClusterError(f"--loop-cluster: cannot connect to {address}: {error or type(error).__name__}") from None
    has_workers, deadline = False, time.monotonic() + _CONNECT_SECONDS
    with suppress(OSError):
        while not (has_workers := bool(_list_threads(client))) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    if not has_workers:
        _disconnect(client)
        raise ClusterError(f"--loop-cluster: {address} has no workers: start some with dask worker {address}")
    executors: dict[str, Executor] = {}

    def list_slots() -> list[Slot]:
        names = _list_threads(client)
        for name in names:
            if name not in executors:
                executors[name] = client.get_executor(workers=[name], allow_other_workers=False, pure=False)
        return [Slot(name, executors[name]) for name in names]

    return Pool(list_slots, lambda: _disconnect(client))


def _list_threads(client: Any) -> list[str]:
    """Return the address of each worker, as often as it has threads; one of each worker first."""
    if client.status != "running":
        raise ConnectionError("the scheduler cannot be reached")
    try:
        workers = client.sync(client.scheduler.identity, callback_timeout=_ANSWER_SECONDS)["workers"]
    except asyncio.TimeoutError:
        raise ConnectionError(f"the scheduler has not answered for {_ANSWER_SECONDS} s") from None
    threads = [(number, name) for name, worker in workers.items() for number in range(worker["nthreads"])]
    return [name for _, name in sorted(threads)]


def _disconnect(client: Any) -> None:
    with suppress(Exception):
        client.close(timeout=_CLOSE_SECONDS)


class ProcessExecutor(ThreadPoolExecutor):
    """Judge in processes of this machine, one for each thread; they start before the project's code has run.

    Processes of `multiprocessing` would look for modules in the folder of the project.
    """

    def __init__(self, size: int, root: str) -> None:
        super().__init__(size)
        self.processes = [start_worker(sys.executable, root) for _ in range(size)]
        self._root = root
        self._free = [*self.processes]

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        return super().submit(self._judge if function is judge_shard else function, *arguments, **keywords)

    def _judge(self, text: bytes, number: int, total: int) -> bytes:
        process = self._free.pop()
        try:
            return ask_worker(process, text, number, total)
        except OSError:
            end_worker(process)
            if process in self.processes:
                self.processes.remove(process)
                process = start_worker(sys.executable, self._root)
                self.processes.append(process)
            raise
        finally:
            self._free.append(process)

    def close(self) -> None:
        """End the processes, also those that still judge."""
        processes, self.processes = self.processes, []
        self.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            end_worker(process)
