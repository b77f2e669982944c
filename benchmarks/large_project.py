"""Compare runs in a large project with plain `pytest` on the same suite: CPU time, state, memory of the driver.

The project is a git repository with many data files and a suite of quick tests. An agent fixes one module in each
iteration. A run of one fix is compared with two plain sessions, and each iteration from the third on with one.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from side_by_side import make_environment, make_parser, make_pytest_command, render_table

FILES_IN_FOLDER = 100
TESTS_IN_MODULE = 30
# The baseline is the first evaluation, so a run of two fixes ends with its third iteration.
FIRST_FIXES, MORE_FIXES = 2, 5
RUN_TARGET, ITERATION_TARGET, MEMORY_TARGET = 1.5, 1.2, 300
CONFTEST = """\
import os

def pytest_runtest_call(item):
    with open(os.environ["EXECUTIONS"], "a") as file:
        file.write(item.nodeid + "\\n")
"""
FUNCTION = "def compute_{number}(value):\n    return value + {number}\n\n\n"
TEST = "def test_{number}():\n    assert mod_{module}.compute_{number}(1) == {number} + 1\n\n\n"
AGENT = 'sed -i "s/ - / + /" $(grep -l " - " shop/*.py | head -n 1)\n'


class SessionCost(NamedTuple):
    """CPU seconds of a process and its children, the peak of its own memory in megabytes, and its output."""

    cpu: float
    peak: float
    output: str


def main() -> None:
    parser = make_parser(__doc__, rounds=5)
    parser.add_argument("--files", type=int, default=50_000, metavar="N", help="data files (default: %(default)s)")
    parser.add_argument("--tests", type=int, default=3_000, metavar="N", help="tests (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        project = Project(Path(name).resolve(), options.files, options.tests)
        rounds = [project.measure_round() for _ in range(options.rounds + 1)][1:]
        rows = [
            [title, f"{median(values):.2f}", target]
            for title, values, target in (
                ("run of one fix / two plain sessions", [row.run_ratio for row in rounds], f"{RUN_TARGET}"),
                (
                    "iteration from the third on / plain",
                    [row.iteration_ratio for row in rounds],
                    f"{ITERATION_TARGET}",
                ),
                ("memory of the driver, MB", [row.peak for row in rounds], f"{MEMORY_TARGET}"),
                ("state written per iteration, kB", [row.state / 1000 for row in rounds], "the change"),
                ("executions of a test that always passes, one fix", [row.executions for row in rounds], "2"),
            )
        ]
        print(f"{options.files:,} files, {options.tests:,} tests; medians of {options.rounds} rounds")
        print(render_table(["", "measured", "target"], rows))
        print(f"plain session: {median(row.plain for row in rounds):.2f} s of CPU time")


class Round(NamedTuple):
    """The figures of one round."""

    plain: float
    run_ratio: float
    iteration_ratio: float
    peak: float
    state: float
    executions: int


class Project:
    """A generated project in a folder of its own."""

    def __init__(self, home: Path, files: int, tests: int) -> None:
        self.root, self._home = home / "project", home
        self._tests = tests
        self._environment = {**make_environment(), "EXECUTIONS": str(home / "executions")}
        self._write(files)

    def measure_round(self) -> Round:
        """Measure plain sessions and runs of one, two and five fixes, one after the other."""
        plain = [self._run_plain() for _ in range(2)]
        (home := self._home / "executions").unlink()
        short, _ = self._run_loop(1)
        executions = Counter(home.read_text(encoding="utf-8").split())
        home.unlink()
        first, first_state = self._run_loop(FIRST_FIXES)
        more, more_state = self._run_loop(MORE_FIXES)
        home.unlink()
        number = MORE_FIXES - FIRST_FIXES
        cpu = sum(plain) / len(plain)
        return Round(
            cpu,
            short.cpu / sum(plain),
            (more.cpu - first.cpu) / number / cpu,
            max(short.peak, more.peak),
            (more_state - first_state) / number,
            int(median(executions.values())),  # hidden tests run once
        )

    def _write(self, files: int) -> None:
        (self.root / "shop").mkdir(parents=True)
        (self.root / "tests").mkdir()
        (self.root / "shop" / "__init__.py").touch()
        (self.root / "pytest.ini").write_text("[pytest]\npythonpath = .\ntestpaths = tests\n", encoding="utf-8")
        (self.root / ".gitignore").write_text(".loop/\n__pycache__/\n.pytest_cache/\n", encoding="utf-8")
        (self.root / "tests" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        (self._home / "agent.sh").write_text(AGENT, encoding="utf-8")
        for module in range(self._tests // TESTS_IN_MODULE):
            numbers = range(TESTS_IN_MODULE)
            code = "".join(FUNCTION.format(number=number) for number in numbers)
            (self.root / "shop" / f"mod_{module}.py").write_text(code, encoding="utf-8")
            tests = "".join(TEST.format(number=number, module=module) for number in numbers)
            text = f"from shop import mod_{module}\n\n\n{tests}"
            (self.root / "tests" / f"test_mod_{module}.py").write_text(text, encoding="utf-8")
        for number in range(files):
            folder = self.root / "data" / f"part_{number // FILES_IN_FOLDER}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"file_{number}.txt").write_text(f"{number}\n" * 20, encoding="utf-8")
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *words], cwd=self.root, check=True)

    def _run_plain(self) -> float:
        cost = self._run(make_pytest_command(), 0)
        if f"{self._tests} passed" not in cost.output:
            raise SystemExit(f"expected {self._tests} passed:\n{cost.output[-2000:]}")
        return cost.cpu

    def _run_loop(self, fixes: int) -> tuple[SessionCost, float]:
        """Break so many modules, and let the agent fix one in each iteration; return the bytes of the run's state."""
        for module in range(fixes):
            path = self.root / "shop" / f"mod_{module}.py"
            path.write_text(path.read_text(encoding="utf-8").replace(" + 1\n", " - 1\n"), encoding="utf-8")
        words = ("--loop-task", "fix until green", "--loop-yes", "--loop-alias", f"fix-{fixes}-{time.time_ns()}")
        agent = ("--loop-agent", f"command:sh {self._home / 'agent.sh'}", "--loop-max-iterations", str(fixes + 3))
        cost = self._run(make_pytest_command(*words, *agent), 0)
        folder = self.root / ".loop" / words[-1]
        return cost, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def _run(self, command: tuple[str, ...], expected: int) -> SessionCost:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command, cwd=self.root, env=self._environment, stdout=output, stderr=subprocess.STDOUT
            )
            peaks: list[float] = []
            watch = threading.Thread(target=lambda: peaks.extend(_poll_peaks(process.pid)))
            watch.start()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            watch.join()
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        if process.returncode != expected:
            raise SystemExit(f"expected exit code {expected}, found {process.returncode}:\n{text[-4000:]}")
        return SessionCost(usage.ru_utime + usage.ru_stime, max(peaks, default=0.0), text)


def _poll_peaks(pid: int) -> Iterator[float]:
    """Yield the peak of a process's own memory until it ends; `wait4` counts its children too."""
    with suppress(OSError, IndexError):
        while True:
            text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            yield int(text.partition("VmHWM:")[2].split()[0]) / 1000
            time.sleep(0.02)


if __name__ == "__main__":
    main()
