"""1,000 cases of a workload against 1,000 tests that run the same quick command, and `-n2` against `-n0`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from side_by_side import Candidate, Cost, arguments, comparison, measure, pytest_command, ratios, spread, table
from slow_rules import seconds, session

TARGET = 1.5
FASTER = 1.6
CASES = 1_000
COMMAND = ("cp", "{case}", "{output}")
TEST = """\
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("cases/*.txt")))
def test_case(name):
    output = HERE / "out" / name / "copy.txt"
    output.unlink(missing_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    command = ["cp", f"cases/{name}.txt", f"out/{name}/copy.txt"]
    subprocess.run(command, cwd=HERE, check=True, capture_output=True, timeout=600)
    assert output.read_bytes() == (HERE / "expected" / f"{name}.txt").read_bytes()
"""


def write(folder: Path, count: int) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "prompt.md").write_text("Copy it.\n", encoding="utf-8")
    for place in ("cases", "expected"):
        (folder / place).mkdir()
        for number in range(count):
            (folder / place / f"{number:05}.txt").write_text(f"receipt {number}\n", encoding="utf-8")
    return folder


def with_manifest(folder: Path, count: int) -> Path:
    manifest = {
        "workloadId": "copies",
        "artifactPaths": ["prompt.md"],
        "casePaths": ["cases/*.txt"],
        "runCommand": " ".join(COMMAND),
        "outputPath": "out/{case_stem}/copy.txt",
        "expectedPaths": ["expected/*.txt"],
    }
    (write(folder, count) / "loop.manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def with_tests(folder: Path, count: int) -> Path:
    (write(folder, count) / "test_cases.py").write_text(TEST, encoding="utf-8")
    return folder


def as_a_run(folder: Path, count: int, rounds: int) -> list[float]:
    """How many times faster `-n2` is where a run judges the cases, in sessions that start warm."""
    sessions = {way: session(folder, way, "loop.manifest.json") for way in ("-n0", "-n2")}
    faster = []
    for number in range(rounds + 1):
        took = {way: seconds(one, count) for way, one in sessions.items()}
        if number:  # the first one starts its server
            faster.append(took["-n0"] / took["-n2"])
    for one in sessions.values():
        if one.warm:
            one.warm.close()
    return faster


def _wall(cost: Cost) -> float:
    return cost.wall


def main() -> None:
    parser = arguments(__doc__, rounds=15)
    parser.add_argument("--cases", type=int, default=CASES, metavar="N", help=f"how many cases (default: {CASES})")
    asked = parser.parse_args()
    proof = f"{asked.cases} passed"
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, word) for word in ("cases", "tests")]
        for folder in folders:
            folder.mkdir()
        cases, tests = with_manifest(folders[0], asked.cases), with_tests(folders[1], asked.cases)
        # The results of the round before are forgotten, and those of this one are kept, as in every first session.
        costs = measure(
            [
                Candidate("cases", cases, pytest_command("-n0", "--cache-clear"), proof),
                Candidate("tests", tests, pytest_command("-n0", "--cache-clear"), proof),
                Candidate("cases -n2", cases, pytest_command("-n2", "--cache-clear"), proof),
                Candidate("tests -n2", tests, pytest_command("-n2", "--cache-clear"), proof),
            ],
            asked.rounds,
        )
        warm = spread(as_a_run(cases, asked.cases, asked.rounds))
    print(f"{asked.cases} cases, {asked.rounds} rounds\n")
    print(comparison(costs, "cases", "tests", TARGET))
    cold = [[f"{name}, cold", spread(ratios(costs, name, f"{name} -n2", _wall))] for name in ("cases", "tests")]
    print("\n-n2 against -n0")
    print(table(["", "times faster (quartiles)"], [["cases, as a run judges them", warm], *cold]))
    print(f"target: at least {FASTER} times faster")


if __name__ == "__main__":
    main()
