"""Measure child processes side by side in interleaved rounds, and print medians in a table."""

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
from operator import attrgetter
from pathlib import Path
from statistics import median, quantiles

MEGABYTE = 1024**2
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Cost:
    """The cost of one child process and its own children."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True)
class Candidate:
    """A pytest session in a folder, and a text that its output must have."""

    name: str
    folder: Path
    arguments: tuple[str, ...]
    expected: str


Costs = dict[str, list[Cost]]


def make_parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--rounds", type=int, default=rounds, metavar="N", help=f"interleaved rounds (default: {rounds})"
    )
    return parser


def make_pytest_command(*extra: str) -> tuple[str, ...]:
    """Return `python -m pytest -q` with every plugin blocked but xdist and this one."""
    names = {entry_point.name for entry_point in entry_points(group="pytest11")}
    others = sorted(name for name in names if name != "agent_loop" and not name.startswith("xdist"))
    blocked = (word for name in others for word in ("-p", f"no:{name}"))
    return (sys.executable, "-m", "pytest", "-q", *blocked, *extra)


def measure(candidates: Sequence[Candidate], rounds: int) -> Costs:
    """Run the candidates in rounds A B A B ... and return their costs, without a first round that fills caches."""
    costs: Costs = {candidate.name: [] for candidate in candidates}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**make_environment(), "PYTHONPYCACHEPREFIX": bytecode}
        for number in range(rounds + 1):
            for candidate in candidates:
                cost = _run(candidate, environment)
                if number:
                    costs[candidate.name].append(cost)
            _show_progress(number, rounds)
    return costs


def make_environment() -> dict[str, str]:
    """Return the environment of a usual session: bytecode is cached, output is buffered, no options are added."""
    removed = ("PYTEST_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    return {key: value for key, value in os.environ.items() if not key.startswith(removed)}


def _run(candidate: Candidate, environment: Mapping[str, str]) -> Cost:
    """Run a session and return its cost.

    Linux includes the peak before exec, so that a child never shows less memory than this small process.
    """
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            candidate.arguments, cwd=candidate.folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if process.returncode or candidate.expected not in text:
        raise SystemExit(
            f"{candidate.name}: expected exit code 0 and {candidate.expected!r}, "
            f"found {process.returncode} and:\n{text[-4000:]}"
        )
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT / MEGABYTE)


def _show_progress(number: int, rounds: int) -> None:
    if sys.stderr.isatty():
        print(f"\rround {number} of {rounds}", end="\n" if number == rounds else "", file=sys.stderr, flush=True)


def compute_ratios(costs: Costs, name: str, other: str, figure: Callable[[Cost], float]) -> list[float]:
    """Divide the figure of one candidate by that of another in each round, since load slows both."""
    return [figure(cost) / figure(base) for cost, base in zip(costs[name], costs[other], strict=True)]


def format_spread(values: Sequence[float], digits: int = 2) -> str:
    """Render the median and the quartiles."""
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return f"{median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def render_comparison(costs: Costs, name: str, other: str, target: float, digits: int = 2) -> str:
    """Render the medians of two candidates, and their ratio beside its target.

    The quickest rounds are compared too, because other load on the machine only adds to a round.
    """
    rows = [
        [row_name, *(f"{median(map(figure, costs[row_name])):.{places}f}" for figure, places in _COLUMNS)]
        for row_name in (name, other)
    ]
    typical = [format_spread(compute_ratios(costs, name, other, figure), digits) for figure, _ in _COLUMNS]
    least = [min(map(figure, costs[name])) / min(map(figure, costs[other])) for figure, _ in _COLUMNS]
    rows += [["ratio (quartiles)", *typical], ["ratio of the best", *(f"{value:.{digits}f}" for value in least)]]
    return f"{render_table(['', 'wall s', 'CPU s', 'peak MB'], rows)}\ntarget: a ratio of at most {target} in time"


_COLUMNS: Sequence[tuple[Callable[[Cost], float], int]] = (
    (attrgetter("wall"), 3),
    (attrgetter("cpu"), 3),
    (attrgetter("peak"), 1),
)


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render rows in columns: the first one aligned to the left, the others to the right."""
    lines = [head, *rows]
    widths = [max(len(row[at]) for row in lines) for at in range(len(head))]
    return "\n".join(_render_row(row, widths) for row in lines)


def _render_row(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]).rstrip()
