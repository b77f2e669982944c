"""Count the mutants a second of `pytest-loop mutate`, mutmut and cosmic-ray on the same module and tests.

Each tool runs for the same time, one after the other in each round; the figure is mutants tried by wall time, with
everything that a tool does first. Name the programs of the others: `--mutmut PATH`, `--cosmic-ray PATH`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from statistics import median

from side_by_side import make_environment, render_table

from pytest_loop.repair.mutation.mutation_request import MutationRequest, measure_mutants

PROJECT = Path(__file__).resolve().parent / "real_bugs" / "schedule"
MODULE = "schedule.py"
TARGET = 5
_COUNT = re.compile(rb"(\d+)/\d+")


def write_project(folder: Path) -> Path:
    target = folder / "project"
    shutil.copytree(PROJECT, target, ignore=shutil.ignore_patterns("bugs.yaml", "__pycache__"))
    (target / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return target


def run_ours(folder: Path, seconds: float) -> float:
    started = time.perf_counter()
    result = measure_mutants(MutationRequest(folder=folder, paths=(MODULE,), seconds=seconds))
    return result.tried / (time.perf_counter() - started)


def _run_for(command: list[str], folder: Path, seconds: float) -> tuple[bytes, float]:
    """Run a command for at most so long; return its output and how long it took."""
    started = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=make_environment(), start_new_session=True
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.terminate()
        process.wait()
    return (folder / "output.txt").read_bytes(), time.perf_counter() - started


def run_mutmut(program: str, folder: Path, seconds: float) -> float:
    settings = f"[mutmut]\npaths_to_mutate={MODULE}\ntests_dir=tests\nalso_copy=\n    {MODULE}\n    pytest.ini\n"
    (folder / "setup.cfg").write_text(settings, encoding="utf-8")
    output, taken = _run_for([program, "run"], folder, seconds)
    counts = _COUNT.findall(output)
    if not counts:
        raise SystemExit(f"mutmut tried no mutant:\n{output.decode(errors='replace')[-2000:]}")
    return int(counts[-1]) / taken


def run_cosmic_ray(program: str, folder: Path, seconds: float) -> float:
    python = Path(program).with_name("python")
    settings = (
        f'[cosmic-ray]\nmodule-path = "{MODULE}"\ntimeout = 20.0\nexcluded-modules = []\n'
        f'test-command = "{python} -m pytest -x -q tests"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    (folder / "cosmic.toml").write_text(settings, encoding="utf-8")
    subprocess.run([program, "init", "cosmic.toml", "work.sqlite"], cwd=folder, check=True, capture_output=True)
    _, taken = _run_for([program, "exec", "cosmic.toml", "work.sqlite"], folder, seconds)
    with closing(sqlite3.connect(folder / "work.sqlite")) as database:
        (count,) = database.execute("SELECT count(*) FROM work_results").fetchone()
    return int(count) / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutmut", default="", metavar="PATH")
    parser.add_argument("--cosmic-ray", default="", metavar="PATH")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    tools = {"pytest-loop mutate": run_ours}
    if options.mutmut:
        tools["mutmut"] = lambda folder, seconds: run_mutmut(options.mutmut, folder, seconds)
    if options.cosmic_ray:
        tools["cosmic-ray"] = lambda folder, seconds: run_cosmic_ray(options.cosmic_ray, folder, seconds)
    rates: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(options.rounds):
        for name, run in tools.items():
            with tempfile.TemporaryDirectory() as home:
                rates[name].append(run(write_project(Path(home).resolve()), options.seconds))
    ours = rates["pytest-loop mutate"]
    rows = [
        [name, f"{median(values):.1f}", f"{median(our / value for our, value in zip(ours, values, strict=True)):.1f}"]
        for name, values in rates.items()
    ]
    print(render_table(["", "mutants a second", "times as many here"], rows))
    print(f"target: at least {TARGET} times as many as mutmut")


if __name__ == "__main__":
    main()
