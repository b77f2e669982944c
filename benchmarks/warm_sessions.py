"""Compare warm sessions with a cold `python -m pytest -q` of the same project, edited before each round."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from content_rules import write_artifact, write_rules
from side_by_side import format_spread, make_environment, make_parser, make_pytest_command, render_table

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.session.warm.launcher import WarmLauncher

LEARNING_SECONDS = 8.0
MODULES = 20
TESTS = 10
LIBRARIES = (
    "asyncio",
    "decimal",
    "hypothesis",
    "jmespath",
    "jsonschema",
    "pydantic",
    "sqlite3",
    "unittest.mock",
    "yaml",
)


@dataclass(frozen=True)
class Case:
    """A project, the edit between sessions, and the target ratio of warm to cold sessions."""

    name: str
    target: float
    write: Callable[[Path], None]
    edit: Callable[[Path, int], None]
    arguments: tuple[str, ...] = ()


def write_one_test(folder: Path) -> None:
    edit_source(folder, 0)
    (folder / "test_shop.py").write_text("import shop\ndef test_it(): assert shop.total() >= 0\n", encoding="utf-8")


def edit_source(folder: Path, number: int) -> None:
    (folder / "shop.py").write_text(f"def total():\n    return {number}\n", encoding="utf-8")


def write_many_tests(folder: Path) -> None:
    edit_source(folder, 0)
    for number in range(MODULES):
        first, second = (LIBRARIES[(number + step) % len(LIBRARIES)] for step in (0, 1))
        lines = [f"import {first}", f"import {second}", "import pytest", "import shop", ""]
        lines += [f"def test_{at}():\n    assert shop.total() + {at} >= {at}\n" for at in range(TESTS)]
        (folder / f"test_part_{number:02}.py").write_text("\n".join(lines), encoding="utf-8")


def write_many_rules(folder: Path) -> None:
    write_artifact(folder)
    write_rules(folder / "content.rules.yaml", 2_000)


def edit_artifact(folder: Path, number: int) -> None:
    path = folder / "artifact.md"
    head, _, _ = path.read_text(encoding="utf-8").partition("edited")
    path.write_text(f"{head}edited {number}\n", encoding="utf-8")


CASES = (
    Case("one test, source edited", 0.22, write_one_test, edit_source),
    Case("200 tests, third-party imports", 0.40, write_many_tests, edit_source),
    Case("2,000 rules, artifact edited", 0.50, write_many_rules, edit_artifact),
    Case("one test, -n 2", 0.25, write_one_test, edit_source, ("-n2",)),
)


@contextmanager
def make_project(case: Case) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        case.write(folder)
        yield folder


def measure_case(case: Case, rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of warm and cold sessions by round, after two rounds that teach the server its imports."""
    environment = make_environment()
    with make_project(case) as folder:
        command = make_pytest_command("-p", "no:cacheprovider", *case.arguments)
        arguments = (*command[3:], "--rootdir", str(folder), "-c", str(folder / "pytest.ini"))
        server = WarmLauncher(arguments, folder, time.time(), is_required=True)
        session = SubprocessSession(arguments, folder, 600.0, environment, lambda _data: None, launcher=server)

        def run_warm() -> None:
            result = session.evaluate(SessionOrder())
            assert result.exit_status == 0, result.output

        def run_cold() -> None:
            subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

        try:
            for _ in range(2):
                run_warm()
                run_cold()
                time.sleep(LEARNING_SECONDS / 2)
            times = []
            for number in range(rounds):
                case.edit(folder, number + 1)
                times.append((_measure(run_warm), _measure(run_cold)))
        finally:
            server.close()
    return [warm for warm, _ in times], [cold for _, cold in times]


def _measure(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def main() -> None:
    parser = make_parser(__doc__, rounds=15)
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases whose name has this in it")
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if options.only in case.name:
            warm, cold = measure_case(case, options.rounds)
            ratio = format_spread(
                [warm_seconds / cold_seconds for warm_seconds, cold_seconds in zip(warm, cold, strict=True)], 3
            )
            rows.append([case.name, f"{median(warm):.3f}", f"{median(cold):.3f}", ratio, f"{case.target:.2f}"])
    print(f"Sessions, {options.rounds} rounds on {os.cpu_count()} cores, wall time")
    print(render_table(["", "warm s", "cold s", "ratio (quartiles)", "target"], rows))


if __name__ == "__main__":
    main()
