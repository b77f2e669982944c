"""Compare evaluations and the start of an agent inside a fence with the same outside.

`--cpu` counts the CPU time of the processes instead of wall time, so that other load has little influence. A warm
session is a child of its server and not counted, so that warm comparisons are left out.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from side_by_side import format_spread, make_environment, make_parser, make_pytest_command, render_table
from warm_sessions import CASES, Case, make_project

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.processes.child import Command, run_command
from pytest_loop.processes.fence import Fence, probe_tools
from pytest_loop.session.runner import ColdLauncher, Launcher, SubprocessSession
from pytest_loop.session.warm.launcher import WarmLauncher
from pytest_loop.workspace.fenced_paths import list_environment_paths

SMALL, LARGE, _, WORKERS = CASES


@dataclass(frozen=True)
class Comparison:
    """One action inside and outside of a fence, and the target ratio of their times."""

    name: str
    target: float
    case: Case
    is_warm: bool = False
    runs_agent: bool = False


COMPARISONS = (
    Comparison("one test, warm", 1.05, SMALL, is_warm=True),
    Comparison("one test, cold", 1.05, SMALL),
    Comparison("one test, -n 2, warm", 1.05, WORKERS, is_warm=True),
    Comparison("200 tests, cold", 1.01, LARGE),
    Comparison("an agent that does nothing", 1.05, SMALL, runs_agent=True),
)


def make_fence(folder: Path) -> Fence:
    """Return a fence with the paths that a run of the project would have."""
    tool = probe_tools().tool
    if tool is None:
        raise SystemExit(f"no fence works here: {probe_tools().problem}")
    sealed = (str(path) for path in (folder / "pytest.ini", *folder.glob("test_*.py")))
    return Fence(tool, (*sealed, *list_environment_paths(folder)))


@contextmanager
def make_evaluation(comparison: Comparison, folder: Path, fence: Fence | None) -> Iterator[Callable[[], None]]:
    """Yield a function that evaluates the project once."""
    command = make_pytest_command("-p", "no:cacheprovider", *comparison.case.arguments)
    arguments = (*command[3:], "--rootdir", str(folder), "-c", str(folder / "pytest.ini"))
    warm = WarmLauncher(arguments, folder, time.time(), is_required=True)
    launcher: Launcher = warm if comparison.is_warm else ColdLauncher()
    session = SubprocessSession(
        arguments, folder, 600.0, make_environment(), lambda _data: None, launcher=launcher, fence=fence
    )

    def evaluate() -> None:
        result = session.evaluate(SessionOrder())
        assert result.exit_status == 0, result.output

    try:
        yield evaluate
    finally:
        launcher.close()


@contextmanager
def make_agent(_comparison: Comparison, folder: Path, fence: Fence | None) -> Iterator[Callable[[], None]]:
    """Yield a function that starts an agent, which ends at once, and searches for processes that it left."""
    yield lambda: _check(run_command(Command(["true"], folder, 60.0, ends_detached=True, fence=fence)).exit_code)


def _check(exit_code: int) -> None:
    assert exit_code == 0


def read_cpu_time() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(comparison: Comparison, rounds: int, read_clock: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Return the seconds inside and outside by round; each round begins with the other side."""
    make = make_agent if comparison.runs_agent else make_evaluation
    with make_project(comparison.case) as folder:
        fence = make_fence(folder)
        with make(comparison, folder, fence) as run_inside, make(comparison, folder, None) as run_outside:
            times: dict[Callable[[], None], list[float]] = {run_inside: [], run_outside: []}
            for number in range(rounds + 2):
                comparison.case.edit(folder, number)
                for run in sorted(times, key=lambda run: (run is run_inside) == (number % 2 == 0)):
                    started = read_clock()
                    run()
                    times[run].append(read_clock() - started)
        return times[run_inside][2:], times[run_outside][2:]


def main() -> None:
    parser = make_parser(__doc__, rounds=40)
    parser.add_argument("--only", default="", metavar="TEXT", help="the comparisons whose name has this in it")
    parser.add_argument("--cpu", action="store_true", help="compare CPU time, without warm sessions")
    options = parser.parse_args()
    read_clock, kind = (read_cpu_time, "CPU") if options.cpu else (time.perf_counter, "wall")
    rows = []
    for comparison in COMPARISONS:
        if options.only in comparison.name and not (options.cpu and comparison.is_warm):
            inside, outside = measure(comparison, options.rounds, read_clock)
            ratios = [one / other for one, other in zip(inside, outside, strict=True)]
            times = [f"{1000 * median(seconds):.1f}" for seconds in (inside, outside)]
            best = f"{min(inside) / min(outside):.3f}"
            rows.append([comparison.name, *times, format_spread(ratios, 3), best, f"{comparison.target:.2f}"])
    tool = probe_tools().tool
    print(f"Inside {tool and tool.value} and outside, {options.rounds} rounds on {os.cpu_count()} cores, {kind} time")
    print(render_table(["", "inside ms", "outside ms", "ratio (quartiles)", "ratio of the best", "target"], rows))


if __name__ == "__main__":
    main()
