"""A project with a wrong sum, and runs on it at the first host of a network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from tests.cluster.network import Network, Process

NAMES = ("one", "two", "three", "four")
SHOP = "def total(numbers):\n    return sum(numbers) + 1\n"
FIXER = """
from pathlib import Path

def work(request):
    if request.step in ("PRODUCE", "REFINE"):
        path = Path(request.workspace) / "shop.py"
        path.write_text(path.read_text().replace(" + 1", " + 0"))
"""
# Tests append a line for each time that they run on a worker of a host, and call what `fault.py` says for that host.
TESTS = """
import os
from pathlib import Path
from shop import total

def test_{name}():
    folder = os.environ["TMPDIR"]
    if "pytest-loop-cluster-" in __file__:
        with open({ledger!r}, "a") as ledger:
            ledger.write("{name} " + Path(folder).parent.name + "\\n")
        from fault import fail
        fail("{name}", Path(folder).parent.name)
    assert total([1, 2]) == 3
"""
NO_FAULT = "def fail(name, host):\n    pass\n"


def read_result(project: Path) -> dict[str, Any]:
    """Read `result.json`, and from the history the score, failures and verdicts of each evaluation."""
    result: dict[str, Any] = json.loads((project / "result.json").read_text())
    events = map(json.loads, Path(result["history"]).read_text().splitlines())
    evaluations = [
        (payload.get("score", 0.0), sorted(rule["id"] for rule in payload.get("failed", ())), _list_verdicts(payload))
        for payload in (event["payload"] for event in events if event["event"] in ("baseline_done", "evaluation_done"))
    ]
    return {**result, "evaluations": evaluations, "verdicts": evaluations[-1][2]}


def _list_verdicts(payload: dict[str, Any]) -> list[tuple[str, str]]:
    groups = payload.get("verdicts", {}).items()
    return sorted((name, verdict) for verdict, group in groups for names in group.values() for name in names)


def make_wheel(folder: Path, name: str, text: str = "") -> str:
    """Write a distribution whose only content is a path file, and return its address."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    files = {
        f"{name}.pth": text,
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with ZipFile(path, "w") as wheel:
        for file, content in files.items():
            wheel.writestr(file, content)
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "".join(f"{file},,\n" for file in files))
    return path.as_uri()


class Story:
    """A project with a wrong sum and tests for it, and runs on it at the first host."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.folder = folder
        self.network = network
        self.ledger = folder / "ledger"
        self.project = folder / "project"
        (self.project / "tests").mkdir(parents=True)
        self.write("pytest.ini", "[pytest]\npythonpath = .\n")
        self.write("shop.py", SHOP)
        self.write("fixer.py", FIXER)
        self.write("fault.py", NO_FAULT)
        for name in NAMES:
            self.write(f"tests/test_{name}.py", TESTS.format(name=name, ledger=str(self.ledger)))

    def write(self, name: str, text: str) -> None:
        (self.project / name).write_text(text)

    def write_fault(self, body: str) -> None:
        """Write what happens when a test runs on a worker; `once` is true for the first caller with this name."""
        self.write(
            "fault.py",
            f"""
import os, time
from pathlib import Path

def once(name):
    try:
        Path({str(self.folder)!r}, name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def fail(name, host):
    {body}
""",
        )

    def has_mark(self, name: str) -> bool:
        return (self.folder / name).exists()

    def start(self, *options: str, task: str = "fix until green", python: str = sys.executable) -> Process:
        words = ("--loop-task", task, "--loop-agent", "python:fixer:work", "--loop-yes") if task else ()
        command = (python, "-m", "pytest", *words, "--loop-json", "result.json", *options)
        return self.network.first.start(*command, cwd=self.project)

    def start_on_workers(self, *options: str, task: str = "fix until green") -> Process:
        return self.start("--loop-cluster", self.network.address, *options, task=task)

    def finish(self, process: Process, seconds: float = 240) -> str:
        output, _ = process.communicate(timeout=seconds)
        return output

    def read_verdicts(self) -> dict[str, Any]:
        result = read_result(self.project)
        return {name: result[name] for name in ("verdicts", "status", "score", "void")}

    def check_completed(self, output: str) -> None:
        """Check that the run is a success with one verdict for each test."""
        verdicts = [(f"tests/test_{name}.py::test_{name}", "pass") for name in sorted(NAMES)]
        assert self.read_verdicts() == {"verdicts": verdicts, "status": "completed", "score": 1.0, "void": False}, (
            output
        )

    def read_ledger(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []
