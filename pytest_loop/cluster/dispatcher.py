"""Give shards to workers until each has one answer; repeat lost shards, and slow ones at an idle worker."""

from __future__ import annotations

import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.cluster.job import Answer, unpack
from pytest_loop.cluster.pool import ClusterError, Pool, Slot
from pytest_loop.cluster.tree import store_pieces
from pytest_loop.cluster.worker import judge_shard
from pytest_loop.core.text.wording import PrintLine

_POLL_SECONDS = 0.1
_SLOTS_SECONDS = 1.0
_GRACE_SECONDS = 30.0
_MAX_TRIES = 4
# A shard is slow if it takes longer than this, and than this many times the median.
_SLOW_SECONDS = 3.0
_SLOW_FACTOR = 1.5


@dataclass
class Workers:
    """The workers at an address, except those that cannot judge: `excluded` has the reason by name."""

    address: str
    open_pool: Callable[[str], Pool]
    print_line: PrintLine
    excluded: dict[str, str] = field(default_factory=dict)
    _pool: Pool | None = None
    _slots: list[Slot] = field(default_factory=list)
    _listed: float = 0.0

    def connect(self) -> None:
        """Connect to the workers, unless connected; raise `ClusterError` if there are none."""
        if self._pool is None:
            self._pool, self._listed = self.open_pool(self.address), 0.0

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def leave(self, slot: Slot) -> None:
        """Close the connection that a slot belongs to."""
        if slot in self._slots:
            self._slots = []
            self.close()

    def list_slots(self) -> list[Slot]:
        """Return the slots of usable workers; raise `ClusterError` if there are only others."""
        self.connect()
        if self._pool is not None and time.monotonic() - self._listed > _SLOTS_SECONDS:
            try:
                self._slots = self._pool.list_slots()
            except (OSError, RuntimeError):
                self.close()
                self.connect()
                self._slots = self._pool.list_slots()
            self._listed = time.monotonic()
        slots = [slot for slot in self._slots if slot.name not in self.excluded]
        if self._slots and not slots:
            raise ClusterError(f"no worker is left: {'; '.join(dict.fromkeys(self.excluded.values()))}")
        return slots

    def exclude(self, slot: Slot, reason: str) -> None:
        """Use a worker no longer; raise `ClusterError` if it is this machine."""
        if not slot.name:
            raise ClusterError(reason)
        if slot.name not in self.excluded:
            self.excluded[slot.name] = reason
            self.print_line(f"worker {slot.name} is not used: {reason}")


@dataclass(frozen=True)
class _Attempt:
    number: int
    slot: Slot
    started: float


@dataclass
class Dispatcher:
    """Judge all shards of one job. `read_pieces` reads the contents that a host lacks; `check` runs at every poll."""

    workers: Workers
    text: bytes
    total: int
    timeout: float
    read_pieces: Callable[[Iterable[str]], Mapping[str, bytes]]
    check: Callable[[], None]
    answers: dict[int, Answer] = field(default_factory=dict)
    sent_bytes: int = 0
    _began: float = field(default_factory=time.monotonic)
    _waiting: deque[int] = field(default_factory=deque)
    _running: dict[Future[bytes], _Attempt] = field(default_factory=dict)
    # By host: a transfer, when the last one ended, and the attempts that continue after it.
    _transfers: dict[str, Future[Any]] = field(default_factory=dict)
    _transferred: dict[str, float] = field(default_factory=dict)
    _parked: dict[str, list[_Attempt]] = field(default_factory=dict)
    _losses: Counter[int] = field(default_factory=Counter)
    _seconds: list[float] = field(default_factory=list)

    def judge(self) -> list[Answer]:
        """Return the answer of each shard; raise `ClusterError` if there is none."""
        self._waiting.extend(range(1, self.total + 1))
        last_slot = time.monotonic()
        try:
            while len(self.answers) < self.total:
                self.check()
                slots = self.workers.list_slots()
                self._drop_lost(slots)
                self._fill(slots)
                last_slot = time.monotonic() if slots else last_slot
                if time.monotonic() - last_slot > _GRACE_SECONDS:
                    raise ClusterError("no worker is left")
                futures: list[Future[Any]] = [*self._running, *self._transfers.values()]
                self._collect(wait(futures, _POLL_SECONDS, "FIRST_COMPLETED").done)
                if not futures:
                    time.sleep(_POLL_SECONDS)
        finally:
            for future in self._running:
                future.cancel()
        return [self.answers[number] for number in sorted(self.answers)]

    # -- shards to slots

    def _fill(self, slots: list[Slot]) -> None:
        """Give each free slot a shard that waits, or one that another worker is slow with."""
        busy = Counter(attempt.slot.name for attempt in self._list_attempts())
        for slot in slots:
            if busy[slot.name]:
                busy[slot.name] -= 1
            elif self._waiting:
                self._submit(self._waiting.popleft(), slot)
            elif (number := self._find_slow(slot)) is not None:
                self._submit(number, slot)

    def _list_attempts(self) -> list[_Attempt]:
        return [*self._running.values(), *(attempt for attempts in self._parked.values() for attempt in attempts)]

    def _find_slow(self, slot: Slot) -> int | None:
        """Return the shard that one other worker has been judging for too long; None if there is none."""
        if not self._seconds:
            return None
        attempts = self._list_attempts()
        tries = Counter(attempt.number for attempt in attempts)
        latest = time.monotonic() - max(_SLOW_SECONDS, _SLOW_FACTOR * statistics.median(self._seconds))
        slow = [
            attempt
            for attempt in attempts
            if attempt.slot.name != slot.name and tries[attempt.number] == 1 and attempt.started < latest
        ]
        return min(slow, key=lambda attempt: attempt.started).number if slow else None

    def _submit(self, number: int, slot: Slot) -> None:
        attempt = _Attempt(number, slot, time.monotonic())
        try:
            future = slot.executor.submit(judge_shard, self.text, number, self.total)
        except Exception as error:
            self._lose(attempt, error)
            self.workers.leave(slot)
            return
        self.sent_bytes += len(self.text)
        self._running[future] = attempt

    # -- answers

    def _collect(self, futures: Iterable[Future[Any]]) -> None:
        hosts = {future: host for host, future in self._transfers.items()}
        for future in futures:
            error = CancelledError("cancelled") if future.cancelled() else future.exception()
            if future in hosts:
                self._end_transfer(hosts[future], error)
            elif error is None:
                self._take(self._running.pop(future), unpack(future.result(), Answer))
            else:
                attempt = self._running.pop(future)
                self._lose(attempt, error)
                if isinstance(error, (BrokenExecutor, CancelledError)):
                    self.workers.leave(attempt.slot)

    def _take(self, attempt: _Attempt, answer: Answer) -> None:
        """Keep the first answer of a shard; raise `ClusterError` if no worker can give one."""
        if attempt.number in self.answers:
            return
        if answer.refusal:
            raise ClusterError(f"{answer.worker}: {answer.refusal}")
        if answer.unfit:
            self.workers.exclude(attempt.slot, answer.unfit)
            self._requeue(attempt.number)
        elif answer.missing:
            self._send(attempt, answer)
        else:
            self.answers[attempt.number] = answer.model_copy(update={"ended": time.monotonic() - self._began})
            self._seconds.append(time.monotonic() - attempt.started)

    def _send(self, attempt: _Attempt, answer: Answer) -> None:
        """Send to a host what it lacks, once for all of its workers."""
        if attempt.started < self._transferred.get(answer.host, 0.0):
            self._submit(attempt.number, attempt.slot)
            return
        self._parked.setdefault(answer.host, []).append(attempt)
        if answer.host in self._transfers:
            return
        contents = self.read_pieces(answer.missing)
        self.sent_bytes += sum(map(len, contents.values()))
        self._transfers[answer.host] = attempt.slot.executor.submit(store_pieces, contents)

    def _end_transfer(self, host: str, error: BaseException | None) -> None:
        self._transferred[host] = time.monotonic()
        del self._transfers[host]
        for attempt in self._parked.pop(host):
            if isinstance(error, OSError) and error.errno:  # a full disk, for example
                self.workers.exclude(attempt.slot, str(error))
            if error is not None:
                self._lose(attempt, error)
            elif attempt.number not in self.answers:
                self._submit(attempt.number, attempt.slot)

    # -- losses

    def _drop_lost(self, slots: list[Slot]) -> None:
        """Lose the attempts that are overdue, or whose worker is gone."""
        oldest = time.monotonic() - self.timeout - _GRACE_SECONDS
        for future, attempt in list(self._running.items()):
            if attempt.slot not in slots or attempt.started < oldest:
                del self._running[future]
                future.cancel()
                self._lose(attempt, TimeoutError("no answer"))
        for host, attempts in list(self._parked.items()):
            if lost := [attempt for attempt in attempts if attempt.slot not in slots]:
                self._transfers.pop(host).cancel()
                for attempt in self._parked.pop(host):
                    self._lose(attempt, ConnectionError(f"{lost[0].slot.name} is gone"))

    def _lose(self, attempt: _Attempt, error: BaseException) -> None:
        self._losses[attempt.number] += 1
        if self._losses[attempt.number] >= _MAX_TRIES:
            raise ClusterError(f"a shard was lost {_MAX_TRIES} times: {error or type(error).__name__}")
        self._requeue(attempt.number)

    def _requeue(self, number: int) -> None:
        """Judge a shard again, unless it is answered, waits, or is judged at another worker."""
        is_tried = any(attempt.number == number for attempt in self._list_attempts())
        if number not in self.answers and number not in self._waiting and not is_tried:
            self._waiting.append(number)
