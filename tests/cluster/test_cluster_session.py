"""Evaluations on workers, with a pool in this process and with processes that are killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cluster import tree
from pytest_loop.cluster.cluster_session import ClusterSession
from pytest_loop.cluster.job import Answer, Job, Project, pack, unpack
from pytest_loop.cluster.pool import ClusterError, Pool, Slot, open_pool
from pytest_loop.cluster.worker import judge_shard
from pytest_loop.core.model.rules import Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.workspace.sealed_files import SealedFiles

ORDER = SessionOrder(canary="a1b2c3d4")


class InlineExecutor(Executor):
    """Judge at once in this process; the changes may replace a project before, and an answer after."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.number = 0
        self.sent: list[bytes] = []
        self.change_contents = self._record_contents
        self.change_project: Callable[[Project], Project] = lambda project: project
        self.change_answer: Callable[[Answer], Answer] = lambda answer: answer

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            if function is tree.store_pieces:
                future.set_result(function(*map(self.change_contents, arguments)))
            else:
                answer = unpack(self._judge(function, *arguments), Answer)
                future.set_result(pack(self.change_answer(answer)))
        except OSError as error:
            future.set_exception(error)
        return future

    def _judge(self, function: Any, text: bytes, *shard: int) -> bytes:
        job = unpack(text, Job)
        self.jobs.append(job)
        self.number = shard[0]
        if project := tree.read_piece(job.project):
            data = self.change_project(Project.model_validate_json(project)).model_dump_json().encode()
            tree.store_pieces({tree.compute_hash(data): data})
            job = job.model_copy(update={"project": tree.compute_hash(data)})
        return bytes(function(pack(job), *shard))

    def _record_contents(self, contents: dict[str, bytes]) -> dict[str, bytes]:
        self.sent += contents.values()
        return contents


@dataclass
class Cluster:
    """A project, a session here, and one on two workers in this process."""

    path: Path
    lines: list[str] = field(default_factory=list)
    executor: InlineExecutor = field(default_factory=InlineExecutor)

    def __post_init__(self) -> None:
        self.write("pytest.ini", "[pytest]\n")
        place = ("--rootdir", str(self.path), "-c", str(self.path / "pytest.ini"))
        self.local = SubprocessSession(
            ("-q", "-p", "no:cacheprovider", *place), self.path, 60.0, os.environ, lambda _data: None
        )
        self.project = SealedFiles(self.path, self.path / ".loop" / "run", ["/tests/"])
        self.session = ClusterSession(self.local, self.project, "inline", self.lines.append, open_pool=self.open_pool)

    def open_pool(self, _address: str, _root: str) -> Pool:
        return Pool(lambda: [Slot("", self.executor)] * 2, lambda: None)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def evaluate(self) -> SessionResult:
        self.project.record_start()
        return self.session.evaluate(ORDER)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Two files of tests for one module; pieces are stored in a folder of their own."""
    (tmp_path / "store").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "store"))
    cluster = Cluster(tmp_path / "project")
    cluster.write("shop.py", "RATE = 19\n")
    for name in ("one", "two"):
        cluster.write(f"tests/test_{name}.py", f"import shop\n\ndef test_{name}():\n    assert shop.RATE == 19\n")
    yield cluster
    cluster.session.close()
    cluster.project.close()


def find_outcomes(result: SessionResult) -> dict[str, Outcome]:
    return {name.rpartition("::")[2]: evidence.outcome for name, evidence in result.evidence.items()}


def test_shards_have_the_result_of_a_session_here(cluster: Cluster) -> None:
    there = cluster.evaluate()
    assert cluster.lines == []
    here = cluster.local.evaluate(ORDER)
    assert find_outcomes(there) == find_outcomes(here) == {"test_one": Outcome.PASSED, "test_two": Outcome.PASSED}
    assert (there.exit_status, there.pytest_failures, there.contradictions) == (0, 0, [])
    assert there.plugins == here.plugins
    assert there.canaries
    assert all(there.canaries)


@pytest.mark.thorough
def test_only_what_changed_is_sent_again(cluster: Cluster) -> None:
    cluster.evaluate()
    assert b"RATE = 19\n" in cluster.executor.sent
    cluster.executor.sent, cluster.executor.jobs = [], []
    cluster.write("shop.py", "RATE = 20\n")
    result = cluster.evaluate()
    assert find_outcomes(result) == {"test_one": Outcome.FAILED, "test_two": Outcome.FAILED}
    assert (cluster.executor.sent, len(cluster.executor.jobs)) == ([], 2)
    assert [[*job.new.values()] for job in cluster.executor.jobs] == [["RATE = 20\n"]] * 2
    large = f"RATE = 20\nTEXT = '{'x' * 20_000}'\n"
    cluster.write("shop.py", large)
    cluster.evaluate()
    assert cluster.executor.sent == [large.encode()]


Change = Callable[[Cluster], None]


def make_environment_differ(cluster: Cluster) -> None:
    cluster.executor.change_project = lambda project: project.model_copy(update={"environment": {"Python": "3.9.1"}})


def install_project(cluster: Cluster) -> None:
    cluster.executor.change_project = lambda project: project.model_copy(update={"modules": ("pydantic",)})


def change_sealed_file(cluster: Cluster) -> None:
    text = "from pathlib import Path\n\ndef test_two():\n    Path(__file__).write_text('')\n"
    cluster.write("tests/test_two.py", text)


def swap_sealed_file(cluster: Cluster) -> None:
    lines = ("path = Path(__file__)", "text = path.read_bytes()", "path.write_text('')", "path.write_bytes(text)")
    cluster.write("tests/test_two.py", "\n    ".join(("from pathlib import Path\n\ndef test_two():", *lines)))


def lose_evidence(cluster: Cluster) -> None:
    cluster.executor.change_answer = lambda answer: answer.model_copy(update={"evidence": {}})


def skip_canary(cluster: Cluster) -> None:
    cluster.executor.change_answer = lambda answer: answer.model_copy(update={"canaries": ()})


def end_early(cluster: Cluster) -> None:
    changes = {"exit_status": None, "ending": "signal 9"}
    cluster.executor.change_answer = lambda answer: answer.model_copy(update=changes)


def judge_by_other_rules(cluster: Cluster) -> None:
    def change(answer: Answer) -> Answer:
        is_second = cluster.executor.number == 2
        return answer.model_copy(update={"plan": None, "plan_hash": "other"}) if is_second else answer

    cluster.executor.change_answer = change


def fill_disk(cluster: Cluster) -> None:
    def fail(contents: dict[str, bytes]) -> dict[str, bytes]:
        raise OSError(28, f"No space left on device for {len(contents)} pieces")

    cluster.executor.change_contents = fail


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make_environment_differ, "another environment: "),
        pytest.param(
            install_project,
            "pydantic is installed there, and would be judged in place of the project",
            marks=pytest.mark.thorough,
        ),
        (change_sealed_file, "sealed files were written while they judged: tests/test_two.py"),
        (swap_sealed_file, "sealed files were written while they judged: tests/test_two.py"),
        pytest.param(lose_evidence, "shard 1 did not report every item", marks=pytest.mark.thorough),
        pytest.param(skip_canary, "shard 1 did not run its hidden test", marks=pytest.mark.thorough),
        pytest.param(end_early, "shard 1 ended with signal 9", marks=pytest.mark.thorough),
        pytest.param(
            judge_by_other_rules,
            "shard 2 does not belong to shard 1: it collected other items or rules",
            marks=pytest.mark.thorough,
        ),
        (fill_disk, "[Errno 28] No space left on device"),
    ],
)
def test_what_a_worker_cannot_judge_is_judged_here(cluster: Cluster, change: Change, message: str) -> None:
    change(cluster)
    result = cluster.evaluate()
    assert set(find_outcomes(result)) == {"test_one", "test_two"}
    assert len(cluster.lines) == 1
    assert cluster.lines[0].startswith("judged here, not on inline: ")
    assert message in cluster.lines[0]


LEAK = "import shop\n\ndef test_{name}():\n    shop.seen = shop.seen + 1 if hasattr(shop, 'seen') else 0\n    assert not shop.seen\n"
ONLY_THERE = "def test_two():\n    assert 'pytest-loop-cluster-' in __file__\n"
ONLY_HERE = "def test_two():\n    assert 'pytest-loop-cluster-' not in __file__\n"


@pytest.mark.parametrize(
    ("text", "has_failed_here", "expected"),
    [
        (ONLY_HERE, False, Outcome.PASSED),
        (ONLY_THERE, True, Outcome.FAILED),
        (LEAK.format(name="one") + LEAK.format(name="two"), False, Outcome.FAILED),
    ],
    ids=["passes here", "passes there", "passes alone"],
)
def test_what_workers_judge_otherwise_is_judged_here(
    cluster: Cluster, text: str, has_failed_here: bool, expected: Outcome
) -> None:
    cluster.write("tests/test_two.py", text)
    if has_failed_here:
        cluster.local.evaluate(ORDER)
    result = cluster.evaluate()
    assert find_outcomes(result)["test_two"] is expected
    assert cluster.lines == ["judged here, not on inline: tests/test_two.py::test_two has another verdict here"]
    assert (result.cluster, result.list_contradictions()) == (None, [])


def test_sealed_files_that_the_baseline_has_written_are_not_watched(cluster: Cluster) -> None:
    swap_sealed_file(cluster)
    cluster.session._sender.written = ("tests/",)
    assert set(find_outcomes(cluster.evaluate()).values()) == {Outcome.PASSED}
    assert cluster.lines == []


@pytest.mark.thorough
def test_damaged_pieces_are_sent_again(cluster: Cluster) -> None:
    cluster.evaluate()
    for piece in tree.find_piece_folder().iterdir():
        piece.write_bytes(b"RATE = 0\n")
    shutil.rmtree(tree.find_base() / "trees")
    assert set(find_outcomes(cluster.evaluate()).values()) == {Outcome.PASSED}
    assert cluster.lines == []


def test_a_killed_worker_loses_no_verdict(cluster: Cluster, tmp_path: Path) -> None:
    """The first test kills its worker once: the session's parent, which is a process of the pool."""
    marker = tmp_path / "killed"
    text = f"""
import os
import shutil
from pathlib import Path

def test_one():
    try:
        Path({str(marker)!r}).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(int(Path({str(tmp_path / "worker")!r}).read_text()), 9)
"""
    cluster.write("tests/test_one.py", text)
    cluster.session.open_pool = lambda _address, root: open_pool("local:1", root)
    cluster.session.connect()
    pool: Any = cluster.session._workers._pool
    (tmp_path / "worker").write_text(str(pool.list_slots()[0].executor.processes[0].pid))
    result = cluster.evaluate()
    assert marker.exists()
    assert find_outcomes(result) == {"test_one": Outcome.PASSED, "test_two": Outcome.PASSED}
    assert cluster.lines == []


def test_processes_import_nothing_of_the_project(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they start again after a session has written modules, and PYTHONPATH names the project."""
    monkeypatch.chdir(cluster.path)
    monkeypatch.setenv("PYTHONPATH", f"{cluster.path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    for name in ("pickle", "json", "sitecustomize", "multiprocessing"):
        text = (
            f"import os\nif 'pytest-loop-cluster-' not in os.getcwd():\n    open({str(tmp_path / 'imported')!r}, 'w')\n"
        )
        cluster.write(f"{name}.py", text)
    cluster.session.open_pool = lambda _address, root: open_pool("local:1", root)
    cluster.session.connect()
    workers: Any = cluster.session._workers
    executor = workers._pool.list_slots()[0].executor
    executor.processes[0].kill()
    job = pack(Job(project="none", base="none", changes="", order=ORDER))
    with pytest.raises(OSError, match=r"ended|Broken pipe"):
        executor.submit(judge_shard, job, 1, 1).result()
    answer = unpack(executor.submit(judge_shard, job, 1, 1).result(), Answer)
    assert answer.missing == ("none", "none")
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("address", ["local:0", "local:two", "here"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(
        ClusterError, match=f"expected tcp://HOST:PORT of a Dask scheduler, ssh:FILE or local:N, found '{address}'"
    ):
        open_pool(address, "")


def test_hosts_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    with pytest.raises(ClusterError, match=f"--loop-cluster: cannot read the hosts in {path}: "):
        open_pool(f"ssh:{path}", "")
    path.write_text("# none yet\n")
    with pytest.raises(ClusterError, match=f"--loop-cluster: {path} names no host: write one on each line"):
        open_pool(f"ssh:{path}", "")


def test_what_any_shard_saw_reaches_the_result(cluster: Cluster) -> None:
    def change(answer: Answer) -> Answer:
        name = f"shard {len(cluster.executor.jobs)}"
        return answer.model_copy(update={"opened_to_write": (name,), "replaced_tests": (name,)})

    cluster.executor.change_answer = change
    result = cluster.evaluate()
    assert len(result.opened_to_write) == len(result.replaced_tests) == 2
    assert result.module_folders == cluster.local.evaluate(ORDER).module_folders
