"""Shards are given to workers until each has one answer, with workers that answer as a test says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_loop.cluster import dispatcher as dispatching
from pytest_loop.cluster.dispatcher import Dispatcher, Workers
from pytest_loop.cluster.job import Answer, pack
from pytest_loop.cluster.pool import ClusterError, Pool, Slot
from pytest_loop.cluster.tree import store_pieces

# An answer, an error, or None for a worker that never answers.
Reply = Answer | Exception | None


@dataclass
class Worker(Executor):
    """A worker that gives its replies one after the other, and the last one again and again."""

    name: str
    replies: list[Reply] = field(default_factory=list)
    shards: list[int] = field(default_factory=list)
    stored: list[dict[str, bytes]] = field(default_factory=list)

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if function is store_pieces:
            self.stored.append(*arguments)
            future.set_result(None)
            return future
        self.shards.append(arguments[1])
        reply = self.replies[0] if len(self.replies) < 2 else self.replies.pop(0)
        if isinstance(reply, Exception):
            future.set_exception(reply)
        elif reply is not None:
            future.set_result(pack(reply.model_copy(update={"worker": self.name, "ending": f"shard {arguments[1]}"})))
        return future


class Cluster:
    """Workers by name, the lines that are printed, and how often somebody connected."""

    def __init__(self, **replies: list[Reply]) -> None:
        self.workers = {name: Worker(name, texts) for name, texts in replies.items()}
        self.lines: list[str] = []
        self.connections = 0

    def open_pool(self, _address: str) -> Pool:
        self.connections += 1
        slots = {name: Slot(name, worker) for name, worker in self.workers.items()}
        return Pool(lambda: [slots[name] for name in self.workers], lambda: None)

    def judge(self, total: int = 2, check: Callable[[], None] = lambda: None) -> list[Answer]:
        workers = Workers("address", self.open_pool, self.lines.append)
        return Dispatcher(workers, b"job", total, 60.0, read_pieces, check).judge()


def read_pieces(digests: Iterable[str]) -> Mapping[str, bytes]:
    return dict.fromkeys(digests, b"content")


@pytest.fixture(autouse=True)
def _without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "_POLL_SECONDS", 0.001)
    monkeypatch.setattr(dispatching, "_SLOTS_SECONDS", 0.002)
    monkeypatch.setattr(dispatching, "_SLOW_SECONDS", 0.01)


DONE = Answer(host="a", exit_status=0)


def describe(answers: list[Answer]) -> list[tuple[str, str]]:
    return [(answer.worker, answer.ending) for answer in answers]


def test_a_slow_shard_is_repeated_by_an_idle_worker_once() -> None:
    cluster = Cluster(slow=[None], quick=[DONE])
    assert describe(cluster.judge()) == [("quick", "shard 1"), ("quick", "shard 2")]
    assert (cluster.workers["slow"].shards, cluster.workers["quick"].shards) == ([1], [2, 1])


def test_a_shard_is_not_repeated_by_its_own_worker_or_a_third_one() -> None:
    """The shard has two attempts, and the run is stopped before one of them ends."""
    cluster = Cluster(slow=[None], quick=[DONE, None], idle=[None])
    deadline = time.monotonic() + 0.2

    def check() -> None:
        if time.monotonic() > deadline:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.judge(check=check)
    assert sum(worker.shards.count(1) for worker in cluster.workers.values()) == 2


def test_more_shards_than_workers_wait_for_a_free_one() -> None:
    cluster = Cluster(one=[DONE], two=[DONE])
    answers = cluster.judge(total=7)
    assert [answer.ending for answer in answers] == [f"shard {number}" for number in range(1, 8)]


def test_a_lost_shard_is_judged_again() -> None:
    cluster = Cluster(one=[RuntimeError("lost"), DONE])
    assert len(cluster.judge()) == 2
    assert cluster.workers["one"].shards == [1, 2, 1]
    assert cluster.connections == 1


def test_a_broken_connection_is_opened_again() -> None:
    cluster = Cluster(one=[BrokenExecutor("a process died"), DONE])
    assert len(cluster.judge()) == 2
    assert cluster.connections == 2


def test_a_shard_that_is_lost_again_and_again_has_no_answer() -> None:
    with pytest.raises(ClusterError, match="a shard was lost 4 times: lost"):
        Cluster(one=[RuntimeError("lost")]).judge()


def test_a_worker_that_cannot_judge_is_named_and_not_used() -> None:
    cluster = Cluster(old=[Answer(unfit="Python is 3.9, expected 3.11")], new=[DONE])
    assert describe(cluster.judge()) == [("new", "shard 1"), ("new", "shard 2")]
    assert cluster.lines == ["worker old is not used: Python is 3.9, expected 3.11"]
    assert cluster.workers["old"].shards == [1]


def test_without_a_worker_that_can_judge_the_reason_is_said() -> None:
    with pytest.raises(ClusterError, match=r"no worker is left: Python is 3\.9"):
        Cluster(old=[Answer(unfit="Python is 3.9")]).judge()


def test_a_refusal_ends_the_evaluation_there() -> None:
    with pytest.raises(ClusterError, match="one: sealed files were changed"):
        Cluster(one=[Answer(refusal="sealed files were changed")]).judge()


def test_a_worker_that_is_gone_loses_its_shard() -> None:
    cluster = Cluster(gone=[None], other=[DONE])

    def check() -> None:
        if cluster.workers["other"].shards:
            cluster.workers.pop("gone", None)

    assert describe(cluster.judge(check=check)) == [("other", "shard 1"), ("other", "shard 2")]


def test_a_host_gets_what_it_lacks_once() -> None:
    cluster = Cluster(one=[Answer(host="a", missing=("x",)), DONE], two=[Answer(host="a", missing=("x",)), DONE])
    assert len(cluster.judge()) == 2
    assert [contents for worker in cluster.workers.values() for contents in worker.stored] == [{"x": b"content"}]
