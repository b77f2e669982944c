"""Compare the checks around a deciding evaluation with the evaluation itself, which starts cold.

The project has the leftovers of an agent that ran the tests: caches, bytecode, and ignored files that are new, changed
and gone. The checks are the clean room, the stamps of sealed files, and (without a fence) installed packages.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from fence import LARGE, SMALL, Comparison, make_evaluation
from side_by_side import format_spread, make_parser, render_table
from warm_sessions import make_project

from pytest_loop.workspace.clean_room import CleanRoom
from pytest_loop.workspace.environment import find_changed_package_files
from pytest_loop.workspace.left_out_files import make_entry
from pytest_loop.workspace.sealed_files import SealedFiles

COMPARISONS = (Comparison("one test, cold", 0.05, SMALL), Comparison("200 tests, cold", 0.01, LARGE))
PACKAGES = 20


def leave_files(folder: Path, text: str) -> None:
    """Write what an agent leaves that has run the tests."""
    for number in range(PACKAGES):
        cache = folder / f"package{number}" / "__pycache__"
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "module.pyc").write_text(text)
    for name in (".pytest_cache/v/lastfailed", "local/state.log", "local/gone.log", "local/new.log"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@contextmanager
def make_checks(folder: Path) -> Iterator[dict[str, Callable[[], None]]]:
    """Yield the checks by name, for a project after an edit."""
    (folder / ".gitignore").write_text("local/\n")
    leave_files(folder, "start")
    (folder / "local/new.log").unlink()
    run_folder = folder / ".loop" / "run"
    project = SealedFiles(folder, run_folder, ["test_*.py", "pytest.ini"])
    room = CleanRoom(project, run_folder)
    try:
        project.record_start()
        room.record()
        since = time.time_ns()
        leave_files(folder, "of the agent")
        (folder / "local/gone.log").unlink()
        project.accept_current()

        def enter_room() -> None:
            with room.enter() as report:
                assert report.changed

        def read_stamps() -> None:
            for path in project.list_sealed_files() * 2:
                make_entry(f"{folder}/{path}")

        yield {
            "clean room": enter_room,
            "sealed files": read_stamps,
            "packages": lambda: _check(find_changed_package_files(folder, since)),
        }
    finally:
        room.close()
        project.close()


def _check(changed: list[str]) -> None:
    assert not changed, changed


def measure_seconds(action: Callable[[], None], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return times[1:]


def main() -> None:
    options = make_parser(__doc__, rounds=15).parse_args()
    rows = []
    for comparison in COMPARISONS:
        with make_project(comparison.case) as folder:
            with make_evaluation(comparison, folder, None) as evaluate:
                evaluation = measure_seconds(evaluate, options.rounds)
            with make_checks(folder) as checks:
                times = {name: measure_seconds(action, options.rounds) for name, action in checks.items()}
            shutil.rmtree(folder / ".loop", ignore_errors=True)
        shares = [sum(parts) / whole for *parts, whole in zip(*times.values(), evaluation, strict=True)]
        figures = [f"{1000 * median(seconds):.1f}" for seconds in (evaluation, *times.values())]
        rows.append([comparison.name, *figures, format_spread(shares, 3), f"{comparison.target:.2f}"])
    print(f"Checks around a deciding evaluation, {options.rounds} rounds, wall time in ms")
    print(render_table(["", "evaluation", *times, "share (quartiles)", "target"], rows))


if __name__ == "__main__":
    main()
