"""Child processes side by side: interleaved rounds, medians of what each cost, and a compact table."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median, quantiles

MEGABYTE = 1024**2
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Cost:
    """What one child process cost, with the children it waited for."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True)
class Candidate:
    """A pytest session in a folder, and the text that shows it did what is measured."""

    name: str
    folder: Path
    arguments: tuple[str, ...]
    proof: str


Costs = dict[str, list[Cost]]


def arguments(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The command line that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--rounds", type=int, default=rounds, metavar="N", help=f"interleaved rounds (default: {rounds})"
    )
    return parser


def pytest_command(*extra: str) -> tuple[str, ...]:
    """`python -m pytest -q` with xdist and this plugin only, whatever else is installed beside them."""
    names = {one.name for one in entry_points(group="pytest11")}
    others = sorted(name for name in names if name != "agent_loop" and not name.startswith("xdist"))
    blocked = (word for name in others for word in ("-p", f"no:{name}"))
    return (sys.executable, "-m", "pytest", "-q", *blocked, *extra)


def measure(candidates: Sequence[Candidate], rounds: int) -> Costs:
    """The costs by name, in rounds A B A B ...; one round before them is not counted (caches of files and bytecode)."""
    costs: Costs = {one.name: [] for one in candidates}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**clean_environment(), "PYTHONPYCACHEPREFIX": bytecode}
        for number in range(rounds + 1):
            for one in candidates:
                cost = _run(one, environment)
                if number:
                    costs[one.name].append(cost)
            _progress(number, rounds)
    return costs


def clean_environment() -> dict[str, str]:
    """A session as people have it: modules are compiled once, output is buffered, and nobody adds options."""
    unusual = ("PYTEST_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    return {key: value for key, value in os.environ.items() if not key.startswith(unusual)}


def _run(one: Candidate, environment: Mapping[str, str]) -> Cost:
    """Run a session to its end.

    Linux counts the peak from before the exec too, so that a child never shows less than this process; it is small.
    """
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            one.arguments, cwd=one.folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode("utf-8", "replace")
    if process.returncode or one.proof not in said:
        raise SystemExit(
            f"{one.name}: expected exit code 0 and {one.proof!r}, found {process.returncode} and:\n{said[-4000:]}"
        )
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT / MEGABYTE)


def _progress(number: int, rounds: int) -> None:
    if sys.stderr.isatty():
        print(f"\rround {number} of {rounds}", end="\n" if number == rounds else "", file=sys.stderr, flush=True)


def ratios(costs: Costs, one: str, other: str, figure: Callable[[Cost], float]) -> list[float]:
    """`one` over `other`, round by round: what slows the machine down slows both."""
    return [figure(a) / figure(b) for a, b in zip(costs[one], costs[other], strict=True)]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, and the quartiles around it."""
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return f"{median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def comparison(costs: Costs, one: str, other: str, target: float, digits: int = 2) -> str:
    """The medians of two candidates, and their ratio beside its target.

    The quickest rounds are compared too: whatever else runs on the machine only ever adds to a round.
    """
    rows = [
        [name, *(f"{median(map(figure, costs[name])):.{places}f}" for figure, places in _COLUMNS)]
        for name in (one, other)
    ]
    typical = [spread(ratios(costs, one, other, figure), digits) for figure, _ in _COLUMNS]
    least = [min(map(figure, costs[one])) / min(map(figure, costs[other])) for figure, _ in _COLUMNS]
    rows += [["ratio (quartiles)", *typical], ["ratio of the best", *(f"{value:.{digits}f}" for value in least)]]
    return f"{table(['', 'wall s', 'CPU s', 'peak MB'], rows)}\ntarget: a ratio of at most {target} in time"


def _wall(cost: Cost) -> float:
    return cost.wall


def _cpu(cost: Cost) -> float:
    return cost.cpu


def _peak(cost: Cost) -> float:
    return cost.peak


_COLUMNS = ((_wall, 3), (_cpu, 3), (_peak, 1))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as what stands in them; the first one to the left, numbers to the right."""
    whole = [head, *rows]
    widths = [max(len(row[at]) for row in whole) for at in range(len(head))]
    return "\n".join(_row(row, widths) for row in whole)


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]).rstrip()
