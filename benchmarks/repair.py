"""Run the built-in repair engine on a public set of small bugs: count green and correct results, and measure its speed.

Each `check` function of the set is split: every `assert` becomes a test with the imports and assignments around it;
a loop stays one test. With `--held-out` the engine gets two thirds of the tests, and its patch is checked against all.
The set is a file of JSON lines as in HumanEvalFix and not part of the repository: `python benchmarks/repair.py PATH`,
or PYTEST_LOOP_BUGS.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from side_by_side import make_environment, make_pytest_command, render_table

ROOT = Path(__file__).resolve().parents[1]
BUGS = os.environ.get("PYTEST_LOOP_BUGS")
TOP_LINES = 5
GRACE = 30


@dataclass(frozen=True)
class Bug:
    """A function with a bug, its correct version, and their tests."""

    name: str
    entry: str
    buggy: str
    canonical: str
    tests: tuple[str, ...]

    @property
    def faulty_lines(self) -> set[int]:
        """The lines that differ, or the lines around a gap."""
        old = [(at, line) for at, line in enumerate(self.buggy.splitlines(), 1) if line.strip()]
        new = [line for line in self.canonical.splitlines() if line.strip()]
        lines = set()
        for tag, start, end, _, _ in difflib.SequenceMatcher(None, [line for _, line in old], new, False).get_opcodes():
            if tag == "insert":
                lines |= {old[at][0] for at in (start - 1, start) if 0 <= at < len(old)}
            elif tag != "equal":
                lines |= {old[at][0] for at in range(start, end)}
        return lines


@dataclass(frozen=True)
class Outcome:
    """The result of the engine for one bug."""

    bug: Bug
    result: dict[str, Any]
    is_right: bool | None
    rank: int | None

    @property
    def is_green(self) -> bool:
        return is_green(self.result)


def is_green(result: dict[str, Any]) -> bool:
    """Return whether all tests pass after the first patch or after several steps."""
    return bool(result["steps"]) and not result["remaining"]


def split_tests(check: str, entry: str) -> tuple[str, ...]:
    """Split a `check` function into tests, one for each statement that asserts something."""
    function = next(
        node for node in ast.parse(check).body if isinstance(node, ast.FunctionDef) and node.name == "check"
    )
    name = function.args.args[0].arg
    context = [node for node in function.body if isinstance(node, ast.Import | ast.ImportFrom | ast.Assign)]
    tests: list[str] = []
    for node in function.body:
        if node not in context:
            lines = "\n".join(ast.unparse(part) for part in [*context, node]).splitlines()
            alias = [] if name == entry else [f"{name} = {entry}"]
            body = "\n".join(f"    {line}" for line in [*alias, *lines])
            tests.append(f"def test_{len(tests):02}():\n{body}\n")
    return tuple(tests)


def read_bugs(path: Path) -> list[Bug]:
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [
        Bug(row["id"], row["entry_point"], row["buggy"], row["canonical"], split_tests(row["test"], row["entry_point"]))
        for row in rows
    ]


def write_project(folder: Path, code: str, tests: tuple[str, ...]) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "solution.py").write_text(code, encoding="utf-8")
    # Some checks use other functions of the module.
    (folder / "test_solution.py").write_text("from solution import *\n\n\n" + "\n\n".join(tests), encoding="utf-8")


def select_tests(bug: Bug, failing: set[int]) -> tuple[str, ...]:
    """Select two thirds of the tests, with at least one failing test."""
    selection = [at for at in range(len(bug.tests)) if at % 3 != 2]
    if failing and not failing & set(selection):
        selection.append(min(failing))
    return tuple(bug.tests[at] for at in selection)


PYTEST_ARGUMENTS = (
    "-p",
    "no:agent_loop",
    "-p",
    "no:asyncio",
    "-p",
    "no:hypothesispytest",
    "-p",
    "no:cov",
    "-p",
    "no:timeout",
)


def find_failing_tests(folder: Path) -> set[int]:
    """Return the numbers of the tests that fail in an ordinary session."""
    command = make_pytest_command("-p", "no:cacheprovider", "-q", "--tb=no", "-rf")
    try:
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=20, env=make_environment()
        )
    except subprocess.TimeoutExpired:
        return {-1}
    return {int(line.split("::test_")[1][:2]) for line in process.stdout.splitlines() if line.startswith("FAILED")}


def run_engine(
    folder: Path, seconds: float, workers: int | None, allow: Sequence[str] = ("solution.py",)
) -> dict[str, Any]:
    request = {
        "folder": str(folder),
        "pytest_arguments": PYTEST_ARGUMENTS,
        "seconds": seconds,
        "allow": allow,
    }
    if workers is not None:
        request["workers"] = workers
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    out = folder / "result.jsonl"
    process = subprocess.run(
        [sys.executable, "-m", "pytest_loop.repair", str(folder / "request.json"), str(out)],
        cwd=folder, env={**make_environment(), "PYTHONPATH": str(ROOT)}, timeout=seconds + GRACE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if process.returncode > 0:
        raise SystemExit(f"the engine ended with exit code {process.returncode}:\n{process.stderr[-2000:]}")
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    no_lines: dict[str, Any] = {name: [] for name in ("localised", "patches", "steps", "remaining")}
    empty = {**no_lines, "tried": 0, "seconds": 0.0, "end_reason": "crashed"}
    return next((message for message in map(json.loads, lines) if message["kind"] == "result"), empty)


def repair_bug(bug: Bug, options: argparse.Namespace) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tests = bug.tests
        if options.held_out:
            write_project(folder, bug.buggy, tests)
            tests = select_tests(bug, find_failing_tests(folder))
        write_project(folder, bug.buggy, tests)
        result = run_engine(folder, options.seconds, 1 if options.jobs > 1 else None)
        is_right = None
        if options.held_out and is_green(result):
            write_project(folder, result["steps"][-1]["after"], bug.tests)
            is_right = not find_failing_tests(folder)
        lines = [location["line"] for location in result["localised"]]
        rank = next((at for at, line in enumerate(lines, 1) if line in bug.faulty_lines), None)
        return Outcome(bug, result, is_right, rank)


def measure_cold_rate(bug: Bug, rounds: int = 5) -> float:
    """Return the candidates per second of a loop that starts pytest for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_project(folder, bug.buggy, bug.tests)
        command = make_pytest_command("-p", "no:cacheprovider", "-q", "-x", *PYTEST_ARGUMENTS)
        started = time.perf_counter()
        for _ in range(rounds):
            subprocess.run(command, cwd=folder, env=make_environment(), stdout=subprocess.DEVNULL, check=False)
        return rounds / (time.perf_counter() - started)


def render_outcome(outcome: Outcome) -> str:
    steps = outcome.result["steps"]
    status = "green" if outcome.is_green else ("partly" if steps else "-")
    right = {None: "", True: " right", False: " WRONG"}[outcome.is_right]
    summary = ", then ".join(f"{step['template']}: {step['description']}" for step in steps)
    return (
        f"{outcome.bug.name:11} {status:6}{right} line {outcome.rank or '-':>2}  tried {outcome.result['tried']:5} "
        f"in {outcome.result['seconds']:5.1f} s  {(summary or outcome.result['end_reason'])[:110]}"
    )


def render_summary(outcomes: list[Outcome], options: argparse.Namespace) -> str:
    green = [outcome for outcome in outcomes if outcome.is_green]
    tried = sum(outcome.result["tried"] for outcome in outcomes)
    seconds = sum(outcome.result["seconds"] for outcome in outcomes)
    first = sum(outcome.rank is not None and outcome.rank <= TOP_LINES for outcome in outcomes)
    rows = [
        ["bugs", str(len(outcomes))],
        ["green", str(len(green))],
        ["faulty line among the first five", f"{first} ({first / len(outcomes):.0%})"],
        ["candidates, seconds", f"{tried:,}, {seconds:.0f}"],
        ["candidates per second", f"{tried / seconds if seconds else 0:.0f}"],
        ["  starting pytest for each", f"{measure_cold_rate(outcomes[0].bug):.1f}"],
        ["seconds to green, median", f"{median(outcome.result['seconds'] for outcome in green) if green else 0:.1f}"],
    ]
    if options.held_out:
        rows.insert(
            2, ["  of these right on the held-out tests", str(sum(outcome.is_right is True for outcome in green))]
        )
    return render_table(["", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bugs", nargs="?" if BUGS else None, type=Path, default=BUGS)
    parser.add_argument("--only", default="", metavar="TEXT", help="bugs whose id or function has this in it")
    parser.add_argument("--limit", type=int, default=None, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="bugs at a time; above 1 each has one worker")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    only = set(options.only.split(",")) if options.only else set()
    bugs = [bug for bug in read_bugs(options.bugs) if not only or bug.name in only or bug.entry in only][
        : options.limit
    ]
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda bug: repair_bug(bug, options), bugs):
            outcomes.append(outcome)
            print(render_outcome(outcome), flush=True)
    print(render_summary(outcomes, options))


if __name__ == "__main__":
    main()
