"""1,000 cases of a workload against 1,000 tests that run the same quick command, and `-n2` against `-n0`."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from side_by_side import Candidate, Costs, arguments, comparison, measure, pytest_command, ratios, spread, table
from slow_rules import seconds, session

TARGET = 1.5
FASTER = 1.6
CASES = 1_000
COMPUTES = "cp {case} {output}"
WAITS = "bash copy.sh {case} {output}"
# Nobody ever writes into `silence`: a millisecond in which nothing is computed, as while a model answers.
SCRIPT = """\
read -rt 0.001 <> silence
read -r line < "$1"
echo "$line" > "$2"
"""
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
    (folder / "copy.sh").write_text(SCRIPT, encoding="utf-8")
    os.mkfifo(folder / "silence")
    for place in ("cases", "expected"):
        (folder / place).mkdir()
        for number in range(count):
            (folder / place / f"{number:05}.txt").write_text(f"receipt {number}\n", encoding="utf-8")
    return folder


def with_manifest(folder: Path, count: int, command: str = COMPUTES) -> Path:
    manifest = {
        "workloadId": "copies",
        "artifactPaths": ["prompt.md"],
        "casePaths": ["cases/*.txt"],
        "runCommand": command,
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
        if one.launcher:
            one.launcher.close()
    return faster


def _sessions(name: str, folder: Path, proof: str) -> list[Candidate]:
    """In one process and in two; results of the round before are forgotten, and kept as in every first session."""
    file = "test_cases.py" if name == "tests" else "loop.manifest.json"
    return [
        Candidate(name, folder, pytest_command("-n0", "--cache-clear", file), proof),
        Candidate(f"{name} -n2", folder, pytest_command("-n2", "--cache-clear", file), proof),
    ]


def _cold(costs: Costs, name: str) -> str:
    return spread(ratios(costs, name, f"{name} -n2", lambda one: one.wall))


def main() -> None:
    parser = arguments(__doc__, rounds=15)
    parser.add_argument("--cases", type=int, default=CASES, metavar="N", help=f"how many cases (default: {CASES})")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folders = {word: Path(name, word) for word in ("cases", "tests", "cases that wait")}
        for folder in folders.values():
            folder.mkdir()
        with_manifest(folders["cases"], asked.cases)
        with_tests(folders["tests"], asked.cases)
        with_manifest(folders["cases that wait"], asked.cases, WAITS)
        proof = f"{asked.cases} passed"
        costs = measure([one for item in folders.items() for one in _sessions(*item, proof)], asked.rounds)
        warm = {
            word: spread(as_a_run(folders[word], asked.cases, asked.rounds)) for word in ("cases", "cases that wait")
        }
    print(f"{asked.cases} cases, {asked.rounds} rounds\n")
    print(comparison(costs, "cases", "tests", TARGET))
    rows = [[word, warm.get(word, ""), _cold(costs, word)] for word in folders]
    print(f"\n{table(['-n2 against -n0, times faster', 'in a run', 'cold'], rows)}")
    print(f"target: at least {FASTER} times faster")


if __name__ == "__main__":
    main()
