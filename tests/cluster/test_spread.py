"""Cases, mutants and candidates on workers end as they do here: with processes, and with real Dask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cluster import outputs
from pytest_loop.cluster.cluster_session import ClusterSession
from pytest_loop.cluster.open_shares import open_shares
from pytest_loop.cluster.pool import ClusterError
from pytest_loop.core.model.rules import Evidence
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import LoopError
from pytest_loop.repair.mutation.mutation_request import MutationRequest, MutationResult, measure_mutants
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.cluster.network import Network
from tests.cluster.story import read_result

WORKLOAD = Path(__file__).parents[2] / "examples" / "workload"
MANIFEST = "loop.manifest.yaml"
SHOP = """\
def total(prices, rate):
    result = 0
    for price in prices:
        if price > 0:
            result += price * rate
    return result

def label(number):
    return "one" if number == 1 else "many"
"""
TESTS = """\
from shop import label, total

def test_total():
    assert total([1, 2], 3) == 9

def test_label():
    assert label(1) == "one"
"""
RULES = """\
rules:
  - {id: mutants, description: tests notice bugs, check: {mutation: {paths: shop.py, tests: tests, limit: 30}}}
"""
FIXER = """\
from pathlib import Path

def work(request):
    if request.step in ("PRODUCE", "REFINE"):
        edits = {"1": ("number == 1", "number == 2"), "2": ("prices[:1]", "prices"), "3": ("price > 0", "price > 9")}
        path = Path(request.workspace) / "shop.py"
        path.write_text(path.read_text().replace(*edits[request.key.rpartition(" ")[2]]))
"""


@dataclass
class Project:
    """A project, a session here, and one on two processes."""

    path: Path
    outputs: tuple[str, ...] = ()
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        place = ("--rootdir", str(self.path), "-c", str(self.path / "pytest.ini"))
        arguments = ("-q", "-p", "no:cacheprovider", *place)
        self.local = SubprocessSession(arguments, self.path, 120.0, os.environ, lambda _: None)
        self.sealed = SealedFiles(self.path, self.path / ".loop" / "run", ["/tests/"], outputs=self.outputs)
        self.sealed.record_start()
        self.session = ClusterSession(self.local, self.sealed, "local:2", self.lines.append)

    def close(self) -> None:
        self.session.close()
        self.sealed.close()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "store"))
    path = tmp_path / "shop"
    (path / "tests").mkdir(parents=True)
    texts = {"pytest.ini": "[pytest]\npythonpath = .\n", "shop.py": SHOP, "tests/test_shop.py": TESTS}
    for name, text in texts.items():
        (path / name).write_text(text)
    return path


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WORKLOAD, tmp_path / "workload", ignore=shutil.ignore_patterns("__pycache__", "out")))


def describe(evidence: dict[str, Evidence]) -> dict[str, object]:
    return {item: (piece.outcome, piece.findings) for item, piece in evidence.items()}


def test_cases_are_divided_and_their_outputs_return(workload: Path) -> None:
    project = Project(workload, outputs=("out/",))
    order = SessionOrder(canary="a1b2c3d4", manifest=MANIFEST)
    there = project.session.evaluate(order)
    names = sorted(path.parent.name for path in workload.glob("out/*/receipt.json"))
    here = project.local.evaluate(order)
    project.close()
    assert describe(there.evidence) == describe(here.evidence)
    assert len(there.evidence) == len(names) == 20
    assert there.cluster is not None
    assert [shard.items for shard in there.cluster.shards] == [10, 10]
    assert project.lines == []


@pytest.mark.thorough
def test_cases_that_ask_the_judge_are_judged_here(workload: Path) -> None:
    text = (workload / MANIFEST).read_text().replace("evaluateCommand: python3 judge.py {output} {expected}\n", "")
    text = text.replace("expectedPaths: [expected/*.json]\n", "agents: {reviewer: {promptFile: prompt.md}}\n")
    (workload / MANIFEST).write_text(text)
    project = Project(workload)
    order = SessionOrder(canary="a1b2c3d4", manifest=MANIFEST)
    project.session.evaluate(order)
    assert project.lines == [f"judged here, not on local:2: the cases of {MANIFEST} ask the judge"]
    assert project.session.evaluate(order).cluster is None
    project.close()


def test_workers_divide_the_mutants_of_a_check(shop: Path) -> None:
    """The verdict is made here, from the results of both workers."""
    (shop / "q.rules.yaml").write_text(RULES)
    project = Project(shop)
    run_shares, texts = project.session.run_shares, list[str]()

    def record(engine: str, request: str) -> list[str]:
        texts.extend(run_shares(engine, request))
        return texts

    project.session.run_shares = record  # type: ignore[method-assign]
    there = project.session.evaluate(SessionOrder(canary="a1b2c3d4"))
    project.close()
    here = measure_mutants(MutationRequest(folder=shop, paths=("shop.py",), pytest_arguments=("tests",)))
    shares = [MutationResult.model_validate_json(text) for text in texts]
    assert sum(share.tried for share in shares) == here.tried == here.mutants
    assert min(share.tried for share in shares) > 0
    found = there.evidence["q.rules.yaml::mutants"].findings
    assert found[0].found.startswith(f"score {here.score:.2f}: {here.killed} of {here.tried} mutants killed by 2 tests")
    assert [finding.found for finding in found[1:]] == [survivor.describe() for survivor in here.survivors]
    assert project.lines == []


@pytest.mark.thorough
def test_mutants_that_workers_cannot_run_are_run_here(shop: Path) -> None:
    (shop / "q.rules.yaml").write_text(RULES)
    project = Project(shop)

    def fail(_engine: str, _request: str) -> list[str]:
        raise ClusterError("a shard was lost 4 times")

    project.session.run_shares = fail  # type: ignore[method-assign,assignment]
    evidence = project.session.evaluate(SessionOrder(canary="a1b2c3d4")).evidence["q.rules.yaml::mutants"]
    project.close()
    assert "mutants killed by 2 tests" in evidence.findings[0].found
    assert project.lines == ["mutants are run here, not on local:2: a shard was lost 4 times"]


def test_mutate_has_the_same_result_on_workers(shop: Path) -> None:
    request = MutationRequest(folder=shop, pytest_arguments=("tests",))
    with open_shares(shop, "local:2", 60.0, print) as run_shares:
        there = measure_mutants(request, run_shares)
    here = measure_mutants(request)
    assert there.model_copy(update={"seconds": here.seconds}) == here


@pytest.mark.thorough
def test_mutants_of_a_killed_worker_are_counted_once(shop: Path, tmp_path: Path) -> None:
    """The first engine kills the worker that started it, once."""
    request = MutationRequest(folder=shop, pytest_arguments=("tests",))
    here, marker = measure_mutants(request), tmp_path / "killed"
    (shop / "conftest.py").write_text(
        f"""
import os
from pathlib import Path
try:
    Path({str(marker)!r}).touch(exist_ok=False)
    os.kill(os.getppid(), 9)
except FileExistsError:
    pass
"""
    )
    with open_shares(shop, "local:2", 60.0, print) as run_shares:
        there = measure_mutants(request, run_shares)
    assert marker.exists()
    assert there.model_copy(update={"seconds": here.seconds}) == here


def test_nothing_of_a_cluster_is_imported_without_one() -> None:
    modules = "pytest_loop.cli.mutate, pytest_loop.cli.start, pytest_loop.run.runner, pytest_loop.agents.builtin_agent"
    names = "[name for name in sys.modules if name.startswith(('pytest_loop.cluster', 'distributed', 'dask'))]"
    command = [sys.executable, "-c", f"import sys, {modules}; print({names})"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_outputs_stay_in_their_place_and_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("new")
    files = outputs.read_outputs(tmp_path, ("out/", "one.txt"), 0.0)
    strange = {"../escaped.txt": files["out/a.txt"], "shop.py": files["out/a.txt"]}
    outputs.write_outputs(project, ("out/", "../"), files | strange)
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["a.txt", "a.txt"]
    assert outputs.read_outputs(tmp_path, ("out/",), 1e12) == {}
    monkeypatch.setattr(outputs, "MAX_SIZE", 2)
    with pytest.raises(LoopError, match="the outputs of its cases have more than"):
        outputs.read_outputs(tmp_path, ("out/",), 0.0)


# -- whole runs


Run = Callable[..., str]


@pytest.fixture(params=["processes", "hosts"])
def run_on_workers(request: pytest.FixtureRequest) -> Run:
    """Run pytest with two workers: processes, or other hosts than that of the run. Return its output."""
    if request.param == "processes":
        return lambda folder, *words: run_pytest(folder, *words, "--loop-cluster", "local:2")
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    network: Network = request.getfixturevalue("network")
    network.start_cluster()

    def run(folder: Path, *words: str) -> str:
        command = (sys.executable, "-m", "pytest", *words, "--loop-cluster", network.address)
        return network.first.start(*command, cwd=folder).communicate(timeout=300)[0]

    return run


def run_pytest(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300).stdout


def compare_runs(folder: Path, run_on_workers: Run, *words: str) -> dict[str, Any]:
    """Return the result of a run on workers, which has to be that of a run here."""
    results = []
    for name, run in (("here", run_pytest), ("there", run_on_workers)):
        copy = Path(shutil.copytree(folder, folder.parent / name / "project"))
        output = run(copy, *words, "--loop-yes", "--loop-json", "result.json")
        assert "judged here" not in output
        results.append(read_result(copy))
    keys = ("status", "score", "void", "iteration", "reason", "evaluations")
    assert {key: results[0].get(key) for key in keys} == {key: results[1].get(key) for key in keys}
    assert '"sent_bytes"' in Path(results[1]["history"]).read_text()
    return results[1]


@pytest.mark.thorough
def test_the_best_of_three_is_the_same_as_here(shop: Path, run_on_workers: Run) -> None:
    (shop / "shop.py").write_text(SHOP.replace("in prices", "in prices[:1]"))
    (shop / "fixer.py").write_text(FIXER)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start")):
        subprocess.run([*git, *words], cwd=shop, check=True)
    task = ("--loop-task", "fix until green", "--loop-agent", "python:fixer:work", "--loop-candidates", "3")
    assert compare_runs(shop, run_on_workers, *task)["status"] == "completed"


@pytest.mark.thorough
def test_a_workload_is_the_same_as_here(workload: Path, run_on_workers: Run) -> None:
    task = ("--loop-manifest", MANIFEST, "--loop-agent", "python:scripted_composer:compose")
    result = compare_runs(workload, run_on_workers, *task, "--loop-workload", "on_regression accept")
    assert (result["status"], result["score"]) == ("completed", 1.0)


@pytest.mark.thorough
def test_a_mutation_check_is_the_same_as_here(shop: Path, run_on_workers: Run) -> None:
    (shop / "q.rules.yaml").write_text(RULES)
    (shop / "shop.py").write_text(SHOP.replace("price > 0", "price"))
    (shop / "fixer.py").write_text(
        FIXER.replace('*edits[request.key.rpartition(" ")[2]]', "'if price:', 'if price > 0:'")
    )
    task = ("q.rules.yaml", "tests", "--loop-task", "make all pass", "--loop-agent", "python:fixer:work")
    compare_runs(shop, run_on_workers, *task, "--loop-max-iterations", "2")
