"""The engine of the built-in repair on a public set of small bugs: green, right on held-out tests, and how fast.

Each `check` of the set is split: every `assert` becomes a test of its own, with the imports and assignments around it;
a loop stays one test. With `--held-out` the engine is given two thirds of the tests, and its first patch is checked
against all of them. The set is a file of JSON lines as HumanEvalFix has them, and is no part of the repository:
`python benchmarks/repair.py PATH`, or PYTEST_LOOP_BUGS.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from side_by_side import clean_environment, pytest_command, table

ROOT = Path(__file__).resolve().parents[1]
BUGS = os.environ.get("PYTEST_LOOP_BUGS")
FIRST = 5
GRACE = 30


@dataclass(frozen=True)
class Bug:
    """One function with a bug in it, as it should be, and the tests that tell them apart."""

    name: str
    entry: str
    buggy: str
    canonical: str
    tests: tuple[str, ...]

    @property
    def faulty(self) -> set[int]:
        """The lines that differ; where lines are missing, those around the gap."""
        old = [(at, line) for at, line in enumerate(self.buggy.splitlines(), 1) if line.strip()]
        new = [line for line in self.canonical.splitlines() if line.strip()]
        found = set()
        for tag, start, end, _, _ in difflib.SequenceMatcher(None, [line for _, line in old], new, False).get_opcodes():
            if tag == "insert":
                found |= {old[at][0] for at in (start - 1, start) if 0 <= at < len(old)}
            elif tag != "equal":
                found |= {old[at][0] for at in range(start, end)}
        return found


@dataclass(frozen=True)
class Outcome:
    """What the engine made of a bug."""

    bug: Bug
    result: dict[str, Any]
    is_right: bool | None
    place: int | None

    @property
    def is_green(self) -> bool:
        return is_green(self.result)


def is_green(result: dict[str, Any]) -> bool:
    """Whether all tests pass after the first patch, or after several steps."""
    return bool(result["steps"]) and not result["remaining"]


def split(check: str, entry: str) -> tuple[str, ...]:
    """The tests of a `check` function, one for each statement that asserts something."""
    function = next(one for one in ast.parse(check).body if isinstance(one, ast.FunctionDef) and one.name == "check")
    name = function.args.args[0].arg
    around = [one for one in function.body if isinstance(one, ast.Import | ast.ImportFrom | ast.Assign)]
    found: list[str] = []
    for stmt in function.body:
        if stmt not in around:
            head = [ast.unparse(one) for one in around]
            lines = "\n".join([*head, ast.unparse(stmt)]).splitlines()
            alias = [] if name == entry else [f"{name} = {entry}"]
            body = "\n".join(f"    {line}" for line in [*alias, *lines])
            found.append(f"def test_{len(found):02}():\n{body}\n")
    return tuple(found)


def read(path: Path) -> list[Bug]:
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [
        Bug(row["id"], row["entry_point"], row["buggy"], row["canonical"], split(row["test"], row["entry_point"]))
        for row in rows
    ]


def write(folder: Path, code: str, tests: tuple[str, ...]) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "solution.py").write_text(code, encoding="utf-8")
    # Some checks use other functions of the module.
    (folder / "test_solution.py").write_text("from solution import *\n\n\n" + "\n\n".join(tests), encoding="utf-8")


def given(bug: Bug, failing: set[int]) -> tuple[str, ...]:
    """Two thirds of the tests, one that fails among them."""
    kept = [at for at in range(len(bug.tests)) if at % 3 != 2]
    if failing and not failing & set(kept):
        kept.append(min(failing))
    return tuple(bug.tests[at] for at in kept)


WORDS = ("-p", "no:agent_loop", "-p", "no:asyncio", "-p", "no:hypothesispytest", "-p", "no:cov", "-p", "no:timeout")


def failing(folder: Path) -> set[int]:
    """The tests that fail in an ordinary session, by their number."""
    command = pytest_command("-p", "no:cacheprovider", "-q", "--tb=no", "-rf")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, env=clean_environment())
    except subprocess.TimeoutExpired:
        return {-1}
    return {int(line.split("::test_")[1][:2]) for line in done.stdout.splitlines() if line.startswith("FAILED")}


def engine(folder: Path, seconds: float, seed: int, workers: int | None) -> dict[str, Any]:
    request = {
        "folder": str(folder),
        "pytest_arguments": WORDS,
        "seconds": seconds,
        "seed": seed,
        "allow": ["solution.py"],
    }
    if workers is not None:
        request["workers"] = workers
    (folder / "order.json").write_text(json.dumps(request), encoding="utf-8")
    out = folder / "result.jsonl"
    subprocess.run(
        [sys.executable, "-m", "pytest_loop.repair", str(folder / "order.json"), str(out)],
        cwd=folder, env={**clean_environment(), "PYTHONPATH": str(ROOT)}, timeout=seconds + GRACE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    nothing: dict[str, Any] = {name: [] for name in ("localised", "patches", "steps", "remaining")}
    empty = {**nothing, "tried": 0, "seconds": 0.0, "end_reason": "crashed"}
    return next((one for line in lines if (one := json.loads(line))["kind"] == "result"), empty)


def outcome(bug: Bug, asked: argparse.Namespace) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tests = bug.tests
        if asked.held_out:
            write(folder, bug.buggy, tests)
            tests = given(bug, failing(folder))
        write(folder, bug.buggy, tests)
        result = engine(folder, asked.seconds, asked.seed, 1 if asked.jobs > 1 else None)
        is_right = None
        if asked.held_out and is_green(result):
            write(folder, result["steps"][-1]["after"], bug.tests)
            is_right = not failing(folder)
        lines = [one["line"] for one in result["localised"]]
        place = next((at for at, line in enumerate(lines, 1) if line in bug.faulty), None)
        return Outcome(bug, result, is_right, place)


def per_second_cold(bug: Bug, rounds: int = 5) -> float:
    """How many candidates a loop reaches that starts pytest for each of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write(folder, bug.buggy, bug.tests)
        command = pytest_command("-p", "no:cacheprovider", "-q", "-x", *WORDS)
        started = time.perf_counter()
        for _ in range(rounds):
            subprocess.run(command, cwd=folder, env=clean_environment(), stdout=subprocess.DEVNULL, check=False)
        return rounds / (time.perf_counter() - started)


def line(one: Outcome) -> str:
    steps = one.result["steps"]
    word = "green" if one.is_green else ("partly" if steps else "-")
    right = {None: "", True: " right", False: " WRONG"}[one.is_right]
    what = ", then ".join(f"{step['template']}: {step['description']}" for step in steps) or one.result["end_reason"]
    return (
        f"{one.bug.name:11} {word:6}{right} line {one.place or '-':>2}  tried {one.result['tried']:5} "
        f"in {one.result['seconds']:5.1f} s  {what[:110]}"
    )


def summary(outcomes: list[Outcome], asked: argparse.Namespace) -> str:
    green = [one for one in outcomes if one.is_green]
    tried = sum(one.result["tried"] for one in outcomes)
    seconds = sum(one.result["seconds"] for one in outcomes)
    first = sum(one.place is not None and one.place <= FIRST for one in outcomes)
    rows = [
        ["bugs", str(len(outcomes))],
        ["green", str(len(green))],
        ["faulty line among the first five", f"{first} ({first / len(outcomes):.0%})"],
        ["candidates, seconds", f"{tried:,}, {seconds:.0f}"],
        ["candidates per second", f"{tried / seconds if seconds else 0:.0f}"],
        ["  starting pytest for each", f"{per_second_cold(outcomes[0].bug):.1f}"],
        ["seconds to green, median", f"{median(one.result['seconds'] for one in green) if green else 0:.1f}"],
    ]
    if asked.held_out:
        rows.insert(2, ["  of these right on the held-out tests", str(sum(one.is_right is True for one in green))])
    return table(["", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bugs", nargs="?" if BUGS else None, type=Path, default=BUGS)
    parser.add_argument("--only", default="", metavar="TEXT", help="bugs whose id or function has this in it")
    parser.add_argument("--limit", type=int, default=None, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="bugs at a time; above 1 each has one worker")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true")
    asked = parser.parse_args()
    only = set(asked.only.split(",")) if asked.only else set()
    bugs = [one for one in read(asked.bugs) if not only or one.name in only or one.entry in only][: asked.limit]
    outcomes = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for one in pool.map(lambda bug: outcome(bug, asked), bugs):
            outcomes.append(one)
            print(line(one), flush=True)
    print(summary(outcomes, asked))


if __name__ == "__main__":
    main()
