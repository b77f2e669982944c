"""Runs on real `dask scheduler` and `dask worker` processes: `tox -e cluster`."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
pytestmark = pytest.mark.thorough
SHOP = "def total(numbers):\n    return sum(numbers) + {extra}\n"
TESTS = "from shop import total\n\ndef test_{name}():\n    assert total([1, 2]) == 3\n"
FIXER = """
from pathlib import Path

def work(request):
    if request.step in ("PRODUCE", "REFINE"):
        path = Path(request.workspace) / "shop.py"
        path.write_text(path.read_text().replace(" + 1", " + 0"))
"""


class Hosts:
    """A scheduler and two workers on the loopback interface."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        options = ("--scheduler-file", str(self.file))
        self.scheduler = self.start("scheduler", *options, "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.workers = [self.start("worker", *options, "--nthreads", "1", "--no-dashboard") for _ in range(2)]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{words[0]}.log").open("ab") as log:
            command = [sys.executable, "-m", "dask", *words]
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True)

    def find_address(self) -> str:
        """Return the scheduler's address once both workers are there."""
        distributed: Any = importlib.import_module("distributed")
        with distributed.Client(scheduler_file=str(self.file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        return str(json.loads(self.file.read_text())["address"])

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    folder = tmp_path / "hosts"
    folder.mkdir()
    hosts = Hosts(folder)
    yield hosts
    hosts.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (project / "shop.py").write_text(SHOP.format(extra=1))
    (project / "fixer.py").write_text(FIXER)
    for name in ("one", "two", "three"):
        (project / "tests" / f"test_{name}.py").write_text(TESTS.format(name=name))
    return project


def start_run(project: Path, address: str) -> subprocess.Popen[str]:
    words = ["--loop-task", "fix until green", "--loop-agent", "python:fixer:work", "--loop-yes"]
    command = [sys.executable, "-m", "pytest", *words, "--loop-cluster", address, "--loop-json", "result.json"]
    return subprocess.Popen(command, cwd=project, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def read_result(project: Path) -> tuple[str, float, bool]:
    result = json.loads((project / "result.json").read_text())
    return result["status"], result["score"], result["void"]


def test_a_run_on_workers_ends_as_here(project: Path, hosts: Hosts) -> None:
    output, _ = start_run(project, hosts.find_address()).communicate(timeout=200)
    assert read_result(project) == ("completed", 1.0, False), output
    assert "judged here" not in output


def test_a_lost_worker_loses_no_verdict(project: Path, hosts: Hosts, tmp_path: Path) -> None:
    """A test kills the workers' first host while it judges; the second one has what is left."""
    marker = tmp_path / "killed"
    group = hosts.workers[0].pid
    (project / "tests" / "test_one.py").write_text(
        f"""
import os
from pathlib import Path
from shop import total

def test_one():
    assert total([1, 2]) == 3
    if "pytest-loop-cluster-" not in __file__:
        return
    try:
        Path({str(marker)!r}).touch(exist_ok=False)
    except FileExistsError:
        return
    os.killpg({group}, 9)
"""
    )
    output, _ = start_run(project, hosts.find_address()).communicate(timeout=200)
    assert marker.exists()
    assert read_result(project) == ("completed", 1.0, False), output


def test_without_a_scheduler_the_run_does_not_start(project: Path) -> None:
    started = time.monotonic()
    output, _ = start_run(project, "tcp://127.0.0.1:9").communicate(timeout=200)
    assert "--loop-cluster: cannot connect to tcp://127.0.0.1:9: " in output
    assert time.monotonic() - started < 150
